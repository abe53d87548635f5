"""What faults have in common by which a rank computes with another value than it should, and nothing says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.history.ledger import UndoStep
from chaos.plan.asks import Asks
from chaos.plan.corruption import SILENT
from chaos.plan.parameters import Parameters
from chaos.platforms.base import Job


@dataclass(frozen=True)
class Altering:
    """A fault kind that changes a value inside the rank. ``what`` is changed, unless the scenario says ``where``."""

    name: str
    what: str
    phases: tuple[str, ...]
    parameters: Parameters = field(default_factory=dict)
    effect: str = SILENT
    signal: None = None

    @property
    def asks(self) -> Asks:
        """The rank must be held just before the value is used."""
        return Asks(phases=self.phases, handlers=False)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """None: what was computed from the value cannot be put back, and ends with the job."""
        del fault, victims
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Tell the agent, which holds the rank, what to change. Raises FaultMissed when it does not hold it."""
        del job
        if victim.answer is None:
            raise FaultMissed(f"rank {victim.rank} is not held at a barrier: {self.name} needs a trigger with a step")
        given = dict(victim.parameters)
        victim.answer({"message": "alter", "what": given.pop("where", self.what), **given})

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rank's own record of the value before and after. Raises FaultMissed if it has ended without, or says why
        it could not."""
        altered = own_event(victim.record, "fault.altered", victim.fault)
        if altered is not None:
            return {"signal": None, **{key: altered[key] for key in _SHOWN if key in altered}}
        refused = own_event(victim.record, "fault.refused", victim.fault)
        if refused is not None:
            raise FaultMissed(f"rank {victim.rank} could not be altered: {refused.get('reason')}")
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended and has not recorded that it altered anything")
        return None


_SHOWN = ("what", "parameter", "element", "bit", "dtype", "before", "after", "from_step")
"""What of the record the evidence shows."""
