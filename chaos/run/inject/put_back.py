"""Undoes the changes of faults, at the end of a launch, a run or an injection into an attached job."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chaos.heal.undo import UNDO_ACTIONS, UndoContext, Undone, undo_step
from chaos.history.ledger import Ledger, LedgerError, UndoStep
from chaos.history.writer import HistoryWriteError


def put_back(ledger: Ledger, steps: Iterable[UndoStep], context: UndoContext, record: Callable[[Undone], None]) -> None:
    """Undo the steps in this order, and record the result of each.

    A step that cannot be recorded (a full disk) does not keep the other steps from being undone. The error is raised
    afterwards: LedgerError, HistoryWriteError.
    """
    unrecorded: list[LedgerError | HistoryWriteError] = []
    for step in steps:
        undone = undo_step(ledger, step, UNDO_ACTIONS, context)
        if undone.unrecorded is not None:
            unrecorded.append(undone.unrecorded)
        try:
            record(undone)
        except HistoryWriteError as error:
            unrecorded.append(error)
    if unrecorded:
        raise unrecorded[0]
