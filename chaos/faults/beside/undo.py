"""Undoing faults that keep a process of the harness beside the job: it is switched off, and the kernel proves it."""

from __future__ import annotations

from pathlib import Path

from chaos.base.wait import DeadlineExpired, wait_for
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.beside.client import DIRECTORY, is_off, switch_off
from chaos.faults.storage.undo import is_in_run
from chaos.history.ledger import UndoStep

_END_SECONDS = 10.0


def end_beside(step: UndoStep, context: UndoContext) -> str:
    """Switch a process off and check that it has ended. Arguments: path of its switch, in the run's directory."""
    switch = Path(str(step.arguments.get("path", "")))
    if not switch.is_absolute() or ".." in switch.parts or switch.parent.name != DIRECTORY:
        raise CannotUndo(f"step {step.id} does not give the path of a switch: {step.arguments}")
    if not is_in_run(switch, context):
        raise CannotUndo(f"{switch} is in no directory of this run; it was left alone")
    switch_off(switch)
    try:
        wait_for("switch-off", lambda: is_off(switch), seconds=_END_SECONDS, clock=context.clock)
    except DeadlineExpired as expired:
        raise CannotUndo(f"a process still holds {switch} after {expired.seconds:g} s") from expired
    return "nothing runs beside the job"
