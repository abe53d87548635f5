"""The step at which an earlier launch of the job has saved a file, by the records of its ranks."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

_SAVED = b'"event":"checkpoint.end"'


class EarlierSaves:
    """The saves that the ranks of other launches have recorded in a directory of history files."""

    def __init__(self, directory: str, attempt: str) -> None:
        self._directory = directory
        self._attempt = attempt

    def step_of(self, path: str) -> int | None:
        """Return the step at which a periodic checkpoint was saved last; None where no record here says it."""
        saves = [
            save
            for save in self._read()
            if save.get("kind") == "periodic" and name_of(str(save.get("path"))) == name_of(path)
        ]
        last = max(saves, key=lambda save: save["mono"], default=None)
        step = None if last is None else last.get("step")
        return step if isinstance(step, int) else None

    def _read(self) -> list[dict[str, Any]]:
        saves: list[dict[str, Any]] = []
        for file in sorted(os.listdir(self._directory)):
            if not file.endswith(".jsonl") or file.startswith(f"{self._attempt}-"):
                continue
            with open(os.path.join(self._directory, file), "rb") as lines:
                for line in lines:
                    if _SAVED in line:
                        with suppress(ValueError):  # the last line of a killed rank may be torn
                            saves.append(json.loads(line))
        return saves


def name_of(path: str) -> str:
    """Return one name for a checkpoint file's paths: a writer may get the file's real path, with its ending."""
    real = os.path.realpath(path)
    return next((real[: -len(end)] for end in (".ckpt", ".safetensors") if real.endswith(end)), real)
