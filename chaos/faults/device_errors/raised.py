"""The common part of faults that a device reports as an error inside the step: raised in the rank, at its barrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import Victim
from chaos.faults.own_record import own_proof
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import JobEffect


@dataclass(frozen=True)
class RaisedError(InRank):
    """A fault kind that makes a rank raise ``RuntimeError(text)``; MindSpore classifies such errors by their text."""

    name: str
    effect: JobEffect
    text: str

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the order to raise the error with this ``text``."""
        del victim
        return {"message": "raise", "text": self.text}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's own record of the error. Raises FaultMissed if it has ended without one."""
        raised = own_proof(job, victim, "fault.raised", "it raised the error", self._is_it)
        return None if raised is None else {"signal": None, "raised": raised["text"]}

    def _is_it(self, raised: dict[str, Any]) -> bool:
        return str(raised.get("text")).startswith(self.text)
