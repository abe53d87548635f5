"""The base of undo actions: the things that an action may work on, and the error that it raises."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chaos.base.clock import Clock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.history.ledger import UndoStep
from chaos.machine.linux.commands import Commands, SystemCommands
from chaos.machine.linux.process import ProcessIdentity, State

if TYPE_CHECKING:
    from chaos.machine.remote.client import HelperClient


class CannotUndo(RuntimeError):
    """The step could not be undone. The message says what is left and what to do."""


class RunNodes(Protocol):
    """The nodes of a run, as its undo steps reach them."""

    def helper(self, number: int) -> AbstractContextManager[HelperClient | None]:
        """Return the helper on a node: the harness's own, or a new one where it has gone; None without the node."""

    def restore(self, number: int, what: str) -> str:
        """Put back the changes of a fault to a whole node, and return how."""


@dataclass(frozen=True)
class UndoContext:
    """The surroundings of an action: the run with the identity ``token``, and the cards that its ledger names.

    ``adopted``: the run has made its faults in a job that was running already. No process of such a job is ever ended.
    ``commands`` runs the tools of the machine. ``nodes`` are the nodes of the run, where it has some. ``directory`` is
    the run's, and ``roots`` are the directories of the job that was running already: a path in a ledger must be below
    them. None where the process that has made the faults acts itself.
    """

    token: str
    clock: Clock
    adopted: bool = False
    commands: Commands = field(default_factory=SystemCommands)
    nodes: RunNodes | None = None
    directory: Path | None = None
    roots: tuple[Path, ...] | None = None


_CONTINUE_SECONDS = 10.0


def see_continued(identity: ProcessIdentity, now: Callable[[], State], context: UndoContext) -> None:
    """Check that a process which got SIGCONT is not stopped: another may have stopped it again. Raises CannotUndo."""
    try:
        wait_for("continue", lambda: now() != "stopped", seconds=_CONTINUE_SECONDS, clock=context.clock)
    except DeadlineExpired as expired:
        raise CannotUndo(
            f"{identity} is stopped again or still, {_CONTINUE_SECONDS:g} s after SIGCONT: kill -CONT {identity.pid}"
        ) from expired


UndoAction = Callable[[UndoStep, UndoContext], str]
"""A function that undoes one step and says in words how. Raises CannotUndo."""
