"""What every undo action has: what it may work on, and how it says that it could not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.history.clock import Clock
from chaos.history.ledger import UndoStep


class CannotUndo(RuntimeError):
    """The step could not be undone. The message says what is left and what to do."""


@dataclass(frozen=True)
class UndoContext:
    """What an action may work on: the run with the identity ``token``, nothing else.

    ``adopted``: the run has made its faults in a job that was running already. No process of such a job is ever ended.
    """

    token: str
    clock: Clock
    adopted: bool = False


UndoAction = Callable[[UndoStep, UndoContext], str]
"""Undoes one step and says in words how. Raises CannotUndo."""
