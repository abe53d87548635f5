"""Undoing storage faults: takes a mount away from the directory that a job saves in, and keeps what was written."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from chaos.faults.disk_full import SOURCE
from chaos.history.ledger import UndoStep
from chaos.platforms.mounts import mounts_at, unmount
from chaos.run.directory import RunDirectoryError, read_run
from chaos.run.undo_base import CannotUndo, UndoContext


def unmount_storage(step: UndoStep, context: UndoContext) -> str:
    """Unmount the directory. Arguments: path, absolute, inside the run's directory and without links or ``..``."""
    path = Path(str(step.arguments.get("path", "")))
    if not path.is_absolute():
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    if ".." in path.parts or path.parent.resolve() != path.parent or not is_in_run(path, context.token):
        raise CannotUndo(f"{path} is in no directory of this run; it was left alone")
    return take_away(path)


def take_away(path: Path) -> str:
    """Take away the topmost mount of a directory, and say what was done. Raises OSError.

    What is on a file system of the harness's own is copied first, then moved to the directory under it. Cut off in
    between, the rest is done by the next call: as long as it is mounted it is the truth, afterwards the copy is.
    """
    kept = path.with_name(f".{path.name}.kept")
    mounts = mounts_at(path)
    last = len(mounts) <= 1  # what lies under another mount is not at hand yet; the next call puts it back
    if mounts and last and mounts[-1].source == SOURCE:
        _copy_afresh(path, kept)
    if mounts:
        unmount(path)
    moved = _move_back(kept, path) if last and kept.is_dir() else 0
    if not mounts and not moved:
        return f"nothing is mounted at {path}"
    return f"unmounted {path}" + (f", {moved} entries kept" if moved else "")


def is_in_run(path: Path, token: str) -> bool:
    """Whether a path leads through the directory of the run with this identity."""
    for parent in path.parents:
        with contextlib.suppress(RunDirectoryError):
            return bool(read_run(parent)["token"] == token)
    return False


def _copy_afresh(source: Path, kept: Path) -> None:
    """Copy a directory; ``kept`` is there only when the copy is whole."""
    unfinished = kept.with_name(f"{kept.name}.new")
    for stale in (unfinished, kept):
        if stale.is_dir():
            shutil.rmtree(stale)
    _copy(source, unfinished)
    unfinished.rename(kept)


def _copy(source: Path, target: Path) -> None:
    """Copy files and directories. What a job that still runs removes meanwhile is left out."""
    target.mkdir()
    for entry in sorted(source.iterdir()):
        with contextlib.suppress(FileNotFoundError):
            if entry.is_dir() and not entry.is_symlink():
                _copy(entry, target / entry.name)
            else:
                shutil.copy2(entry, target / entry.name, follow_symlinks=False)


def _move_back(kept: Path, path: Path) -> int:
    entries = sorted(kept.iterdir())
    for entry in entries:
        target = path / entry.name
        if _is_directory(entry) and _is_directory(target):  # the job has made it again
            _move_back(entry, target)
            continue
        os.rename(entry, target)  # noqa: PTH104 - as a pair with the system call: atomic, never a copy
    kept.rmdir()
    return len(entries)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
