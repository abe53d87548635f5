"""The states that earlier processes of a rank have recorded: a process may get one of them without a load of its own.

Another rank loads the checkpoint then and hands its content over, as DistributedDataParallel does with weights. The
rank's own earlier records show after which step it held this state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

_BEGUN, _INITIAL, _DIGEST = b'"event":"train.begin"', b'"event":"initial"', b'"event":"digest"'
_SAVED = b'"event":"checkpoint.end"'


class EarlierStates:
    """The states in the records of a rank's processes but ``pid``, below a directory of history files."""

    def __init__(self, directory: str, rank: int, pid: int) -> None:
        self._directory = directory
        self._rank = f"-rank_{rank}-"
        self._own = f"-{pid}.jsonl"

    def steps_of(self, digests: Mapping[str, str]) -> set[int]:
        """Return the steps after which the rank held a state with these values; 0 is the job's beginning.

        The record may have more values: those that an optimizer makes in its first update.
        """
        steps: set[int] = set()
        for file in self._files():
            if self._rank in file:
                with open(os.path.join(self._directory, file), "rb") as lines:
                    steps.update(step for step, held in _states_of(lines) if digests.items() <= held.items())
        return steps

    def any_saved(self) -> bool:
        """Return whether a process of any rank has recorded a save."""
        for file in self._files():
            with open(os.path.join(self._directory, file), "rb") as lines:
                if any(_SAVED in line for line in lines):
                    return True
        return False

    def _files(self) -> list[str]:
        names = sorted(os.listdir(self._directory))
        return [file for file in names if file.endswith(".jsonl") and not file.endswith(self._own)]


def _states_of(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the states of one process, each with its step."""
    begun: Any = None
    for line in lines:
        with suppress(ValueError):  # the last line of a killed rank may be torn
            if _BEGUN in line:
                begun = json.loads(line).get("initial_step")
            elif _INITIAL in line or _DIGEST in line:
                event = json.loads(line)
                step, held = event.get("step", begun), event.get("parameters")
                if isinstance(step, int) and isinstance(held, dict):
                    yield step, held
