"""Find the saves of MindFormers' new layout: ``iteration_%08d/{prefix}-model-%07d-%07d.safetensors`` and the files
beside it.

Names are hints; nothing is opened here. Source: MindFormers 1.7 to 2.1, ``checkpoint/utils.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.base.walking import Unseen, raise_unseen, walk
from chaos.observe.checkpoints.mindformers_records import COMMON, METADATA, TRACKER

ITERATION = re.compile(r"iteration_(?P<step>\d{8,18})")
"""Name of the directory of one save."""

PART = re.compile(r"(?:(?P<prefix>.+)-)?(?P<part>model|opt)-(?P<rank>\d{7,18})-(?P<total>\d{7,18})\.safetensors")
"""Name of a file of a save: the parameters, or the optimizer's state, of one rank among ``total``."""


@dataclass(frozen=True)
class IterationDirectory:
    """One save. ``step`` is from the directory's name; ``unfinished`` are files that a writer has not renamed.

    ``models`` and ``optimizers`` map ranks to files; ``common`` and ``metadata`` are None if the file is missing.
    """

    path: Path
    step: int
    models: dict[int, Path]
    optimizers: dict[int, Path]
    common: Path | None
    metadata: Path | None
    unfinished: tuple[Path, ...]


def find_iterations(root: Path, unseen: Unseen = raise_unseen) -> list[IterationDirectory]:
    """Return all saves under ``root``, ordered by path. Symbolic links, to files or directories, are not followed.

    ``unseen`` receives each path that cannot be read; without ``unseen`` an OSError is raised instead.
    """
    iterations = []
    for directory, subdirectories, files in walk(root, unseen):
        subdirectories.sort()
        match = ITERATION.fullmatch(Path(directory).name)
        if match is not None:
            plain = [path for name in sorted(files) if not (path := Path(directory, name)).is_symlink()]
            iterations.append(_describe(Path(directory), int(match["step"]), plain))
    return sorted(iterations, key=lambda iteration: iteration.path)


def find_trackers(root: Path, unseen: Unseen = raise_unseen) -> list[Path]:
    """Return the files under ``root`` that name the iteration to resume from.

    Files in ``resume_record`` are left out: MindFormers keeps there the choice of rank 0 in the legacy layout.

    ``unseen`` receives each path that cannot be read; without ``unseen`` an OSError is raised instead.
    """
    return sorted(_trackers(root, unseen))


def companion(model: Path) -> Path | None:
    """Return the file of the optimizer's state of the rank of this model file; None for another kind of file."""
    match = PART.fullmatch(model.name)
    if match is None or match["part"] != "model" or ITERATION.fullmatch(model.parent.name) is None:
        return None
    return model.with_name(_other_part(match, "opt"))


def model_name(name: str) -> str | None:
    """Return the name of the model file of the rank that a part belongs to; None for another kind of file."""
    match = PART.fullmatch(name)
    return None if match is None else _other_part(match, "model")


def _other_part(match: re.Match[str], part: str) -> str:
    prefix = "" if match["prefix"] is None else f"{match['prefix']}-"
    return f"{prefix}{part}-{match['rank']}-{match['total']}.safetensors"


def _describe(path: Path, step: int, files: list[Path]) -> IterationDirectory:
    parts: dict[str, dict[int, Path]] = {"model": {}, "opt": {}}
    for file in files:
        if match := PART.fullmatch(file.name):
            parts[match["part"]][int(match["rank"])] = file
    by_name = {file.name: file for file in files}
    # MindSpore writes "….tmp", MindFormers has Python name its temporary files.
    unfinished = tuple(file for file in files if file.suffix == ".tmp" or re.fullmatch(r"tmp[a-z0-9_]{8}", file.name))
    return IterationDirectory(
        path, step, parts["model"], parts["opt"], by_name.get(COMMON), by_name.get(METADATA), unfinished
    )


def _trackers(root: Path, unseen: Unseen) -> Iterator[Path]:
    for directory, _, files in walk(root, unseen):
        if TRACKER in files and Path(directory).name != "resume_record":
            yield Path(directory, TRACKER)
