"""The common part of faults by which a rank ends itself: the agent's act, and the kernel's word on the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH, JobEffect
from chaos.plan.rules.parameters import Parameters
from chaos.plan.rules.required_place import RequiredPlace


@dataclass(frozen=True)
class OwnEnd(InRank):
    """A fault kind by which a rank ends its own process. ``act`` is the agent's order.

    ``signal`` is the signal with which the kernel must say that the process has ended; None where it ends with an exit
    code.
    """

    name: str
    signal: int | None = None
    parameters: Parameters = field(default_factory=dict)
    effect: JobEffect = DEATH

    required_place = RequiredPlace()
    """The rank must be held: nobody can make the fault from outside."""

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the act."""
        del victim
        return {"message": "act", "act": self.name}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's exit status, and the rank's own record of the act.

        Raises FaultMissed for another end.
        """
        status = job.exit_status(victim.identity)
        if status is None:
            return None
        code = self.code(victim)
        if (status.signal, status.code) != ((self.signal, None) if code is None else (None, code)):
            raise FaultMissed(f"rank {victim.rank} ended with {status}, not with {_end_text(self.signal, code)}")
        acting = own_event(victim.record, "fault.acting", victim.fault)
        if acting is None or acting.get("act") != self.name:
            raise FaultMissed(
                f"rank {victim.rank} ended with {status}, but not by itself: it has recorded no {self.name}"
            )
        return {"signal": status.signal, "code": status.code, "act": self.name}

    def code(self, victim: Victim) -> int | None:
        """Return the exit code with which the process must end; None where a signal ends it."""
        del victim
        return None


def _end_text(signal: int | None, code: int | None) -> str:
    return f"exit code {code}" if signal is None else f"signal {int(signal)}"
