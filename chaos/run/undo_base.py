"""What every undo action has: what it may work on, and how it says that it could not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.history.clock import Clock
from chaos.history.ledger import UndoStep
from chaos.platforms.commands import Commands, SystemCommands


class CannotUndo(RuntimeError):
    """The step could not be undone. The message says what is left and what to do."""


@dataclass(frozen=True)
class UndoContext:
    """What an action may work on: the run with the identity ``token``, and the cards that its ledger names.

    ``adopted``: the run has made its faults in a job that was running already. No process of such a job is ever ended.
    ``commands`` runs the tools of the machine.
    """

    token: str
    clock: Clock
    adopted: bool = False
    commands: Commands = field(default_factory=SystemCommands)


UndoAction = Callable[[UndoStep, UndoContext], str]
"""Undoes one step and says in words how. Raises CannotUndo."""
