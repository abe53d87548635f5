"""What faults have in common that a device reports as an error inside the step: raised in the rank, at its barrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.history.ledger import UndoStep
from chaos.platforms.base import Job


@dataclass(frozen=True)
class RaisedError:
    """A fault kind that makes a rank raise ``RuntimeError(text)``; MindSpore classifies such errors by their text."""

    name: str
    effect: str
    text: str
    signal: None = None

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: an error that was raised cannot be put back."""
        del fault, victims
        return []

    def order(self, victim: Victim) -> dict[str, Any]:
        """What the agent is told besides that it must raise: the error's ``text``."""
        del victim
        return {"text": self.text}

    def inject(self, job: Job, victim: Victim) -> None:
        """Answer the agent, which holds the rank, with the error. Raises FaultMissed when it does not hold it."""
        del job
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        victim.answer({"message": "raise", **self.order(victim)})

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's own record that it has raised the error. Raises FaultMissed if it has ended without."""
        raised = own_event(victim.record, "fault.raised", victim.fault)
        if raised is not None and str(raised.get("text")).startswith(self.text):
            return {"signal": None, "raised": raised["text"]}
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended and has not recorded that it raised the error")
        return None
