"""The common part of faults that the agent makes inside a rank, while it holds the rank at a barrier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job


class InRank(FaultKind):
    """A fault kind that the agent makes by an order; nothing is done from outside."""

    name: str

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: nothing changes outside the rank's process, and changes in it end with it, or before."""
        del fault, victims
        return []

    @abstractmethod
    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the message to the agent of this rank (:mod:`chaos.agent.barriers`)."""

    def inject(self, job: Job, victim: Victim) -> None:
        """Answer the agent, which holds the rank, with the order. Raises FaultMissed when it does not hold the rank."""
        del job
        self.held(victim)(self.order(victim))

    def held(self, victim: Victim) -> Callable[[dict[str, Any]], None]:
        """Return the function that answers the agent. Raises FaultMissed when the agent does not hold the rank."""
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        return victim.answer
