"""The damaged checkpoints of a run between the fault and the next launch: what lies there, and what was saved there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.evidence.checkpoints.damage import ends_with
from chaos.faults.checkpoints.checkpoint_damage import KEPT
from chaos.faults.checkpoints.file_content import ABSENT, digest_file, duplicate
from chaos.history.reader import History
from chaos.observe.checkpoints.registered import directory_marks, files_of, is_part
from chaos.observe.checkpoints.saved_state import SavedState, read_saved_state


@dataclass(frozen=True)
class Damaged:
    """A file that a fault has hit, by its evidence: names are below the directory that the job saves in.

    ``name`` is where its content lies now, which is ``file`` unless it was renamed. ``kept`` is its original.
    """

    fault: str
    rank: int
    file: str
    name: str
    kept: Path


def damaged_files(run_dir: Path, history: History) -> Iterator[Damaged]:
    """Yield the files that faults have damaged, renamed or removed, each of which has a kept original."""
    for landing in history.select("fault.landed"):
        for entry in landing.data.get("evidence") or []:
            if isinstance(entry, dict) and (damaged := _damaged(run_dir, str(landing.data.get("fault")), entry)):
                yield damaged


def _damaged(run_dir: Path, fault: str, entry: dict[str, Any]) -> Damaged | None:
    match entry:
        case {"rank": int(rank), "file": str(file), "before": str(), "after": str()}:
            kept = run_dir / KEPT / fault / f"rank_{rank}" / file
            return Damaged(fault, rank, file, str(entry.get("renamed") or file), kept) if kept.is_file() else None
    return None


def digest_there(path: Path) -> str:
    """Return the digest of a file, or ``absent``. Raises OSError for a file that cannot be read."""
    return digest_file(path) if os.path.lexists(path) else ABSENT


def state_as_saved(path: Path, run_dir: Path, damaged: Sequence[Damaged]) -> SavedState | None:
    """Return the state in a damaged checkpoint as it was saved, from the originals; None for one that is not damaged.

    Raises CheckpointError for a checkpoint that was not sound.
    """
    originals = {Path(file.file).name: file.kept for file in damaged if _is_hit(path, file)}
    if not originals:
        return None
    if path.name in originals and len(files_of(path)) == 1:
        return read_saved_state(originals[path.name])
    with tempfile.TemporaryDirectory(prefix=".as-saved-", dir=run_dir) as directory:
        for name, file in ({file.name: file for file in files_of(path)} | originals).items():
            duplicate(file, Path(directory, name))
        return read_saved_state(Path(directory, path.name))


def _is_hit(path: Path, damaged: Damaged) -> bool:
    """Return whether the file is the checkpoint, or a part of the directory that it stands for."""
    file = Path(damaged.file)
    if ends_with(path.as_posix(), damaged.file):
        return True
    return path.name in directory_marks() and is_part(file.name) and ends_with(str(path.parent), str(file.parent))
