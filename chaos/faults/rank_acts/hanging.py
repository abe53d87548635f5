"""The common part of faults by which a rank hangs: its process lives, and its training does not go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.faults.rank_acts.plan_hangs import SECONDS
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.plan.job_effect import HANG, JobEffect
from chaos.plan.rules.parameters import Parameter, Parameters
from chaos.plan.rules.required_place import RequiredPlace

PHASES = ("step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end")
"""Points of a step at which a rank can hang."""

PARAMETERS: Parameters = MappingProxyType(
    {SECONDS: Parameter("seconds after which the rank goes on; else never", least=0.001, most=86400)}
)
REQUIRED_PLACE = RequiredPlace(phases=PHASES, handlers=False)


@dataclass(frozen=True)
class Hanging(InRank):
    """A fault kind by which the training of a rank waits. ``act`` is the agent's order."""

    name: str
    effect: JobEffect = HANG
    parameters: Parameters = field(default_factory=lambda: PARAMETERS)
    required_place: RequiredPlace = REQUIRED_PLACE

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the act, and the seconds after which the rank goes on."""
        return {"message": "act", "act": self.name, SECONDS: victim.parameters.get(SECONDS)}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's record of the wait, and the kernel's word that it lives.

        Raises FaultMissed if it does not live.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended, so it does not hang")
        acting = own_event(victim.record, "fault.acting", victim.fault)
        if acting is None or acting.get("act") != self.name:
            return None
        return {"signal": None, "act": self.name, "state": job.state(victim.identity)}
