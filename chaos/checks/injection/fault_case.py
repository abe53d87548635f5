"""The input of the judgement of one planned fault: plan, records, proof; and its targets and signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import ranks_text, signal_number
from chaos.evidence.injection.deaths import required_end
from chaos.evidence.injection.triggers import demands, place_text
from chaos.evidence.proof import Proof
from chaos.evidence.scenario_line import scenario_line
from chaos.evidence.statement_data import StatementData, about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault


@dataclass(frozen=True)
class FaultCase:
    """One planned fault to judge. ``no_proof`` says why ``proof`` is None."""

    plan: Plan
    history: History
    artifacts: Artifacts
    fault: PlannedFault
    collector: Collector
    proof: Proof | None
    no_proof: str

    @property
    def line(self) -> str:
        """The scenario's line that plans the fault."""
        return scenario_line(self.fault.line)

    @property
    def planned(self) -> str:
        """The fault in words."""
        trigger_demands = demands(self.fault.trigger)
        when = " or ".join(map(place_text, trigger_demands.barriers)) or "its trigger"
        return f"fault {self.fault.id} ({self.fault.kind}) hits {target_of(self.fault)} once, at {when}"

    @property
    def subject(self) -> StatementData:
        """The fault as data."""
        return about(self.fault.ranks, step=self.fault.trigger.get("step"), fault=self.fault.id)

    def unproven(self, observation: str, *where: str) -> None:
        """Say that the fault is not proven."""
        self.collector.unknown(self.planned, observation, self.line, *where, data=self.subject)

    def of_fault(self, event: str) -> list[Event]:
        """Return the events of that name about this fault."""
        return self.history.select(event, fault=self.fault.id)


def target_of(fault: PlannedFault) -> str:
    """Return the ranks or the process that the fault hits, in words."""
    return ranks_text(fault.ranks) if fault.role is None else f"the {fault.role}"


def evidence_of(landing: Event) -> list[dict[str, Any]]:
    """Return the entries of evidence in a landing, one for each rank."""
    return [entry for entry in landing.data.get("evidence") or [] if isinstance(entry, dict)]


def planned_signal(fault: PlannedFault) -> int | None:
    """Return the signal that a fault of this kind, or the plan, asks for; None where neither does."""
    if (end := required_end(fault)) is not None:
        return end.signal
    if (shown := effect_of(fault.kind).shows) is not None:
        return shown
    return signal_number(fault.parameters.get("signal"))
