"""Undoing damage to a checkpoint: the original takes its place again, unless the job has saved another file there."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from chaos.faults.checkpoint_damage import ABSENT, KEPT, digest_file, unfinished_place
from chaos.history.ledger import UndoStep
from chaos.run.undo_base import CannotUndo, UndoContext
from chaos.run.undo_storage import is_in_run


def restore_checkpoint(step: UndoStep, context: UndoContext) -> str:
    """Put the original back.

    Arguments: ``path``, of the file; ``kept``, of its original; ``before`` and ``after``, the SHA-256 of the original
    and of the damaged file, or ``absent``; ``moved``, where a renamed file is, else left out. Paths are absolute,
    inside the run's directory and without links or ``..``. Cut off in between, the rest is done by the next call.
    """
    match step.arguments:
        case {"path": str(path_text), "kept": str(kept_text), "before": str(before), "after": str(after)}:
            path, kept = Path(path_text), Path(kept_text)
            moved = Path(str(step.arguments["moved"])) if "moved" in step.arguments else None
        case _:
            raise CannotUndo(f"step {step.id} does not say which file: {step.arguments}")
    for one in filter(None, (path, kept, moved)):
        _check_place(one, step, context)
    unfinished_place(path).unlink(missing_ok=True)
    if not kept.is_file():
        return f"nothing was damaged: {path} is as the job has saved it"
    if moved is not None:
        return _move_back(path, moved, kept, before)
    if not os.path.lexists(path) and after == ABSENT:
        _copy(kept, path)
        _forget(kept)
        return f"put {path} back as the job has saved it"
    if not os.path.lexists(path):
        return f"the job has removed {path} since; its original is kept in {kept}"
    now = digest_file(path)
    if now not in (before, after):
        return f"the job has saved another {path} since; the original is kept in {kept}"
    if now == after:
        _copy(kept, unfinished_place(path))
        unfinished_place(path).replace(path)
    _forget(kept)
    return f"put {path} back as the job has saved it"


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


def _check_place(path: Path, step: UndoStep, context: UndoContext) -> None:
    if not path.is_absolute():
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    if ".." in path.parts or path.parent.resolve() != path.parent or not is_in_run(path, context.token):
        raise CannotUndo(f"{path} is in no directory of this run; it was left alone")
    if path.is_symlink():
        raise CannotUndo(f"{path} is a link; it was left alone")


def _copy(kept: Path, target: Path) -> None:
    try:
        os.link(kept, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(kept, target, follow_symlinks=False)


def _forget(kept: Path) -> None:
    """Remove what was kept, and directories that are empty then."""
    kept.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for directory in kept.parents:
            directory.rmdir()
            if directory.name == KEPT:
                return
