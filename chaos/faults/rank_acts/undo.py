"""Undoing an OOM kill: the control group of the rank is removed when nobody is in it any more."""

from __future__ import annotations

from pathlib import Path

from chaos.faults.action import CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.linux.cgroup import members
from chaos.machine.linux.memory_group import is_memory_group


def remove_memory_group(step: UndoStep, context: UndoContext) -> str:
    """Remove a control group that was made for one process. Arguments: path, absolute."""
    del context
    path = Path(str(step.arguments.get("path", "")))
    if not path.is_absolute() or ".." in path.parts:
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    if not path.exists():
        return f"there is no {path}"
    if not is_memory_group(path):
        raise CannotUndo(f"{path} is no control group of a run; it was left alone")
    if left := members(path):
        raise CannotUndo(f"{path} still holds process {', '.join(map(str, left))}")
    path.rmdir()
    return f"removed {path}"
