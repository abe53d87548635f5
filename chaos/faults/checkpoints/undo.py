"""Undoing damage to a checkpoint.

A damaged file's original takes its place again, unless the job has saved another file there. Files that a fault took
from the job stay where they are kept.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.checkpoints.checkpoint_damage import KEPT
from chaos.faults.checkpoints.file_content import ABSENT, digest_file, duplicate, unfinished_place
from chaos.faults.storage.undo import is_in_run
from chaos.history.ledger import UndoStep


def restore_checkpoint(step: UndoStep, context: UndoContext) -> str:
    """Put the original back.

    Arguments: ``path``, of the file; ``kept``, of its original; ``before`` and ``after``, the SHA-256 of the original
    and of the damaged file, or ``absent``; ``moved``, where a renamed file is, else left out. Paths are absolute,
    inside the run's directory and without links or ``..``. If the call is cut off, the next one does the rest.
    """
    path, kept, moved, before, after = _read(step)
    for file in filter(None, (path, kept, moved)):
        _check_place(file, step, is_in_run(file, context))
    return _restore(path, kept, moved, before, after)


def restore_checkpoint_adopted(step: UndoStep, context: UndoContext) -> str:
    """Put the original back in a job that was running already.

    Arguments: as of :func:`restore_checkpoint`, but ``path`` and ``moved`` are below ``root``, a directory of the job,
    and directly in the directory that ``directory`` identifies by device and inode. The job's directories were written
    into run.json when its ranks were found.
    """
    path, kept, moved, before, after = _read(step)
    match step.arguments:
        case {"root": str(root), "directory": [int(device), int(inode)]}:
            directory = Path(root)
        case _:
            raise CannotUndo(f"step {step.id} does not say which directory of the job: {step.arguments}")
    if not context.adopted:
        raise CannotUndo(f"step {step.id} belongs to a job that was running already, but this run started its own")
    if context.roots is not None and directory not in context.roots:
        raise CannotUndo(
            f"{directory} is none of the directories that the job had when it was found; it was left alone"
        )
    _check_place(kept, step, is_in_run(kept, context))
    try:
        there = path.parent.lstat()
    except FileNotFoundError:
        return f"the job's directory {path.parent} is gone; the original is kept in {kept}"
    for file in filter(None, (path, moved)):
        _check_place(file, step, file.is_relative_to(directory) and file.parent == path.parent)
    if (there.st_dev, there.st_ino) != (device, inode):
        return f"{path.parent} is another directory than it was; the original is kept in {kept}"
    return _restore(path, kept, moved, before, after)


def note_kept(step: UndoStep, context: UndoContext) -> str:
    """Return where files are kept that a fault took from the job; they stay there. Arguments: path, absolute."""
    del context
    path = Path(str(step.arguments.get("path", "")))
    if not path.is_absolute():
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    return f"kept in {path}, to be moved back by hand" if path.is_dir() else f"nothing was taken: there is no {path}"


def _read(step: UndoStep) -> tuple[Path, Path, Path | None, str, str]:
    """Return path, kept, moved, before and after."""
    match step.arguments:
        case {"path": str(path), "kept": str(kept), "before": str(before), "after": str(after)}:
            moved = Path(str(step.arguments["moved"])) if "moved" in step.arguments else None
            return Path(path), Path(kept), moved, before, after
        case _:
            raise CannotUndo(f"step {step.id} does not say which file: {step.arguments}")


def _restore(path: Path, kept: Path, moved: Path | None, before: str, after: str) -> str:
    unfinished_place(path).unlink(missing_ok=True)
    if not kept.is_file():
        return f"nothing was damaged: {path} is as the job has saved it"
    if moved is not None:
        return _move_back(path, moved, kept, before)
    if not os.path.lexists(path) and after == ABSENT:
        _check_kept(kept, before)
        duplicate(kept, path)
        _forget(kept)
        return f"put {path} back as the job has saved it"
    if not os.path.lexists(path):
        return f"the job has removed {path} since; its original is kept in {kept}"
    now = digest_file(path)
    if now not in (before, after):
        return f"the job has saved another {path} since; the original is kept in {kept}"
    if now == after:
        _check_kept(kept, before)
        duplicate(kept, unfinished_place(path))
        unfinished_place(path).replace(path)
    _forget(kept)
    return f"put {path} back as the job has saved it"


def _check_kept(kept: Path, before: str) -> None:
    """Refuse content that was not taken from the checkpoint's place."""
    if digest_file(kept) != before:
        raise CannotUndo(f"{kept} no longer is the original that was kept; nothing was restored")


def _move_back(path: Path, moved: Path, kept: Path, before: str) -> str:
    if os.path.lexists(path):
        if digest_file(path) != before:
            return f"the job has saved another {path} since; the original is kept in {kept}"
    elif moved.is_file() and digest_file(moved) == before:
        moved.rename(path)
    else:
        return f"the job has saved another {moved} since; the original of {path} is kept in {kept}"
    _forget(kept)
    return f"gave {path} its name back"


def _check_place(path: Path, step: UndoStep, of_job: bool) -> None:
    if not path.is_absolute():
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    if ".." in path.parts or path.parent.resolve() != path.parent or not of_job:
        raise CannotUndo(f"{path} is in no directory of this run or its job; it was left alone")
    if path.is_symlink():
        raise CannotUndo(f"{path} is a link; it was left alone")


def _forget(kept: Path) -> None:
    """Remove the kept file, and directories that are empty then."""
    kept.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for directory in kept.parents:
            directory.rmdir()
            if directory.name == KEPT:
                return
