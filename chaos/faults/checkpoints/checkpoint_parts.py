"""The files of a save: in MindFormers' new layout a checkpoint is several files in one directory.

``model`` is the rank's parameters, ``optimizer`` the state of its optimizer; ``common.json`` has the facts about the
save, ``metadata.json``, which jobs of several ranks have, says what is in which file. Elsewhere a rank's checkpoint is
one file, ``model``, or one directory, of which each rank has written a file, and one rank the index ``.metadata``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.faults.checkpoints.saved_files import part_of_directory
from chaos.faults.kind import FaultMissed
from chaos.observe.checkpoints.mindformers_layout import companion
from chaos.observe.checkpoints.mindformers_state import optimizer_of, storage_of
from chaos.plan.checkpoints.saved import INDEX, MODEL, OPTIMIZER


@dataclass(frozen=True)
class Hit:
    """A rank's newest finished checkpoint: its file, the step that is stored in it, and the file before it if any.

    ``whole`` is the checkpoint where the file is a part of a directory. ``place`` is the file's own place where
    ``path`` is its kept original.
    """

    path: Path
    step: int
    older: Path | None
    whole: Path | None = None
    place: Path | None = None


def part_of(hit: Hit, part: object, rank: int) -> Hit:
    """Return the file of the same save with this part, and the same file of the save before, None where it has none.

    Of a directory that is one checkpoint of all ranks, ``model`` is the file that the rank has written, and
    ``.metadata`` the index of all. Raises FaultMissed where the newest save has none.
    """
    if part == MODEL:
        return _own_part(hit, rank)
    if part == INDEX:
        return _index(hit)
    path = _beside(hit.path, str(part))
    if path is None:
        raise FaultMissed(f"there is no {part} beside {hit.path}: only a save of MindFormers' new layout has one")
    return Hit(path, hit.step, None if hit.older is None else _beside(hit.older, str(part)))


def _index(hit: Hit) -> Hit:
    if hit.path.name != INDEX:
        raise FaultMissed(f"{hit.path} is one file: only a directory of PyTorch's distributed checkpoints has {INDEX}")
    return Hit(hit.path, hit.step, hit.older if hit.older is not None and hit.older.name == INDEX else None)


def _own_part(hit: Hit, rank: int) -> Hit:
    path = part_of_directory(hit.path, rank)
    if path == hit.path:
        return hit
    older = None if hit.older is None else hit.older.with_name(path.name)
    return Hit(path, hit.step, older if older is not None and older.is_file() else None, whole=hit.path)


def _beside(model: Path, part: str) -> Path | None:
    if companion(model) is None:
        return None
    path = optimizer_of(model, storage_of(model.parent)) if part == OPTIMIZER else model.with_name(part)
    return path if path is not None and path.is_file() and not path.is_symlink() else None
