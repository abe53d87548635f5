"""What an earlier process of the job has recorded of a file that it saved: the step, and what an optimizer lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

_SAVED = b'"event":"checkpoint.end"'
_RENAMED = b'"event":"checkpoint.renamed"'
_BEGUN, _ENDED = b'"event":"step.begin"', b'"event":"step.end"'


class Save(NamedTuple):
    """A periodic checkpoint as its rank has recorded it: its step, and the steps until then without an update.

    ``within`` says that the step had not ended, so the checkpoint may hold the state before it.
    """

    step: int
    left_out: int = 0
    within: bool = False


class EarlierSaves:
    """The saves that other processes have recorded in a directory of history files.

    They are of other launches, and of processes of this launch in whose place a supervisor has started new ones. The
    process ``pid`` is not among them.
    """

    def __init__(self, directory: str, pid: int) -> None:
        self._directory = directory
        self._own = f"-{pid}.jsonl"

    def of(self, path: str) -> Save | None:
        """Return the last save of a periodic checkpoint; None where no record here has its step."""
        saves = [
            save
            for save in self._read()
            if save.get("kind") == "periodic" and name_of(str(save.get("path"))) == name_of(path)
        ]
        last = max(saves, key=lambda save: save["mono"], default=None)
        step, left_out = (None, 0) if last is None else (last.get("step"), last.get("left_out", 0))
        if last is None or not isinstance(step, int) or not isinstance(left_out, int):
            return None
        return Save(step, left_out, last["within"])

    def has_predecessor(self, rank: int) -> bool:
        """Return whether another process of a rank has a record here."""
        files = (file for file in os.listdir(self._directory) if file.endswith(".jsonl"))
        return any(f"-rank_{rank}-" in file and not file.endswith(self._own) for file in files)

    def _read(self) -> list[dict[str, Any]]:
        saves: list[dict[str, Any]] = []
        for file in sorted(os.listdir(self._directory)):
            if not file.endswith(".jsonl") or file.endswith(self._own):
                continue
            with open(os.path.join(self._directory, file), "rb") as lines:
                saves += _saves_of(lines)
        return saves


def _saves_of(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """Return the saves of one process, each with the last name of its file, and whether it was ``within`` a step."""
    saves: list[dict[str, Any]] = []
    in_step = False
    for line in lines:
        in_step = _BEGUN in line or (in_step and _ENDED not in line)
        with suppress(ValueError):  # the last line of a killed rank may be torn
            if _SAVED in line:
                save = json.loads(line)
                saves.append({**save, "within": in_step and not save.get("late")})
            elif _RENAMED in line:
                renamed = json.loads(line)
                for save in saves:
                    if save.get("path") == renamed.get("path"):
                        save["path"] = renamed.get("to")
    return saves


def name_of(path: str) -> str:
    """Return one name for a checkpoint file's paths: a writer may get the file's real path, with its ending."""
    real = os.path.realpath(path)
    return next((real[: -len(end)] for end in (".ckpt", ".safetensors") if real.endswith(end)), real)
