"""The common part of faults by which a rank computes with a wrong value, and nothing reports it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event, own_proof
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import SILENT, JobEffect
from chaos.plan.rules.parameters import Parameters
from chaos.plan.rules.required_place import RequiredPlace


@dataclass(frozen=True)
class Altering(InRank):
    """A fault kind that changes a value inside the rank. ``what`` is changed, unless the scenario says ``where``."""

    name: str
    what: str
    required_place: RequiredPlace
    """The rank must be held just before the value is used."""
    parameters: Parameters = field(default_factory=dict)
    effect: JobEffect = SILENT

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the value that is to be changed, and the change."""
        parameters = dict(victim.parameters)
        return {"message": "alter", "what": parameters.pop("where", self.what), **parameters}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's own record of the value before and after.

        Raises FaultMissed if the rank has ended without it, or says why it could not.
        """
        refused = own_event(victim.record, "fault.refused", victim.fault)
        if refused is not None:
            raise FaultMissed(f"rank {victim.rank} could not be altered: {refused.get('reason')}")
        altered = own_proof(job, victim, "fault.altered", "it altered anything")
        return None if altered is None else {"signal": None, **{key: altered[key] for key in _SHOWN if key in altered}}


_SHOWN = ("what", "parameter", "element", "bit", "dtype", "before", "after", "from_step")
"""Fields of the record that the evidence shows."""
