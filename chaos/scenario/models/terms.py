"""The terms in the values of a scenario: durations, ranks, mechanisms, strategies, phases, handlers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from chaos.scenario.models.duration import parse_duration, show_duration
from chaos.scenario.models.mechanisms import mechanism_names

FROM_FILE = "file"
"""Validation context of values that were read from a file: there a float is a duration without its unit."""


def _seconds(value: object, info: ValidationInfo) -> float:
    return parse_duration(str(value) if info.context == FROM_FILE and isinstance(value, float) else value)


Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(show_duration, when_used="json"),
    Field(json_schema_extra={"x-chaos-duration": True}),
]
"""A duration. Written with its unit (``5s``, ``200ms``, ``2m``, ``1h``), held in seconds."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
"""Names become names of files, so they cannot be ``..`` or begin like an option."""

Tag = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=100)]
"""A tag, in letters that pytest's marker expressions take."""

Rank = Annotated[int, Field(ge=0)]
"""A rank; ranks are counted from 0."""


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Ranks = Annotated[tuple[Rank, ...], BeforeValidator(_as_tuple)]
"""Ranks as a list. Converted here, since inside a union older pydantic ignores a field's ``strict=False``."""


@dataclass(frozen=True)
class RegisteredWord:
    """One of the names of a registry. The registry is asked when a value is validated, and never at import."""

    words: Callable[[], tuple[str, ...]]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: object, handler: object) -> dict[str, Any]:
        return {"enum": list(self.words()), "type": "string"}

    def _validate(self, value: object) -> object:
        if value in self.words():
            return value
        expected = " or ".join(map(repr, self.words()))
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})


Mechanism = Annotated[str, RegisteredWord(mechanism_names)]
"""The high-availability mechanisms, by their names in MS_ENABLE_TFT, and those of launchers."""

Strategy = Literal["retry", "recover-in-place", "recover", "elastic-training", "dump", "exit"]
"""MindCluster's recovery strategies (``recover-strategy``), the most preferred one first."""

Phase = Literal[
    "step.begin",
    "forward",
    "allreduce.enter",
    "optimizer.update",
    "step.end",
    "checkpoint.begin",
    "checkpoint.write",
    "checkpoint.end",
    "checkpoint.load",
]
"""The agent's barrier names, in the order in which one step passes them.

``checkpoint.write`` is reached when the first parameter has been written: the file is there, and not whole.
"""


Handler = Literal["stop", "clean", "repair", "rollback", "rebuild_group", "save_ckpt", "rename", "exit"]
"""Handlers of the framework that the MindIO TFT SDK calls in a rank, by the names under which they are registered."""

MEASURES = frozenset(
    {"detection", "stop", "save", "repair", "exit", "relaunch", "import", "load", "compile", "first step", "caught up"}
    | {"total", "rollback", "stalled"}
)
"""Quantities that can be compared between two runs: the phases of a recovery, and its and the saving's costs."""


class Model(BaseModel):
    """Base of every part of a scenario: unknown keys are errors, nothing changes after loading, no coercion.

    Its validator is made at the first use: most parts are only ever validated within a scenario, by the scenario's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=(), defer_build=True)
