"""``exception``: raises a Python exception in the middle of a step.

MindSpore reports an unknown error to the SDK, so the rank counts as lost. Without the SDK
the process ends with exit code 1.

On Ascend: a defect in the script, or an unclassified device error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from chaos.faults.device_errors.raised import RaisedError
from chaos.faults.kind import Victim
from chaos.plan.job_effect import UNKNOWN
from chaos.plan.rules.parameters import Parameter, Parameters
from chaos.plan.rules.required_place import RequiredPlace

TYPES = (
    "RuntimeError",
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
    "OSError",
    "MemoryError",
    "AssertionError",
)
DEFAULT_TEXT = "made by a fault of the kind exception"

PARAMETERS: Parameters = MappingProxyType(
    {
        "type": Parameter("a built-in exception", words=TYPES, default=TYPES[0]),
        "text": Parameter("its text", text=True, default=DEFAULT_TEXT),
    }
)
REQUIRED_PLACE = RequiredPlace(handlers=False)


@dataclass(frozen=True)
class RaisedException(RaisedError):
    """An exception of the scenario's choice, raised by the agent where it holds the rank."""

    parameters: Parameters = field(default_factory=lambda: PARAMETERS)
    required_place: RequiredPlace = REQUIRED_PLACE

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the act, the exception's type and its text."""
        parameters = victim.parameters
        return {
            "message": "act",
            "act": "exception",
            "type": parameters.get("type", TYPES[0]),
            "text": parameters.get("text", DEFAULT_TEXT),
        }


KIND = RaisedException("exception", UNKNOWN, "")
