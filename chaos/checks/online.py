"""What a plan says about online repairs, and when each of them took place. Facts only; nothing here judges.

In an online repair no process ends: the SDK stops and cleans every rank, has the broken ones copy their parameters from
a replica where memory was lost (UCE; none is lost with HCCE), and all of them go on from a common step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan, PlannedFault

UCE = "UCE"
HCCE = "HCCE"
MECHANISMS = (UCE, HCCE)
ACTED = "online repair"
"""What chaos.checks.acted calls both: their signs are the same but for the handler ``repair``."""

_LOSES_MEMORY = "uce"


class NotTold(Exception):
    """The repairs cannot be told apart. The text says what is missing."""


@dataclass(frozen=True)
class Repair:
    """One planned repair. ``number`` counts from 1; ``step`` is the last one that all ranks hold after it.

    It has the time from ``begin``, the act of its first fault, up to ``end``, that of the next repair (None: the end of
    the run), in nanoseconds of the monotonic clock.
    """

    number: int
    step: int
    faults: tuple[PlannedFault, ...]
    begin: int
    end: int | None

    def holds(self, event: Event) -> bool:
        """Whether the event is of the time of this repair."""
        return self.begin <= event.mono and (self.end is None or event.mono < self.end)

    def of(self, events: Iterable[Event]) -> list[Event]:
        """Those of the events that are of the time of this repair."""
        return [one for one in events if self.holds(one)]

    @property
    def hit(self) -> frozenset[int]:
        """Ranks in which a fault of this repair was raised."""
        return frozenset(rank for fault in self.faults for rank in fault.ranks)

    @property
    def lost(self) -> frozenset[int]:
        """Ranks whose device memory is lost, so that they need a replica's parameters."""
        return frozenset(rank for fault in self.faults if fault.kind == _LOSES_MEMORY for rank in fault.ranks)


def repairs_online(plan: Plan) -> bool:
    """Whether the plan promises an online repair."""
    return plan.mechanism in MECHANISMS


def repairs(plan: Plan, history: History) -> list[Repair]:
    """The planned repairs with their times. Raises NotTold when a fault has no time, or belongs to no repair."""
    if not plan.repair_steps:
        raise NotTold("the plan has no step of a repair")
    groups = _grouped(plan)
    begins = [_act(history, faults) for faults in groups]
    if begins != sorted(begins):
        raise NotTold("the faults were not made in the order of the plan")
    ends = [*begins[1:], None]
    parts = zip(plan.repair_steps, groups, begins, ends, strict=True)
    return [Repair(number, *part) for number, part in enumerate(parts, 1)]


def _grouped(plan: Plan) -> list[tuple[PlannedFault, ...]]:
    """The faults of each repair: one each, or all that strike at the same moment together."""
    if len(plan.faults) == len(plan.repair_steps):
        return [(fault,) for fault in plan.faults]
    groups: list[list[PlannedFault]] = []
    for fault in plan.faults:
        if groups and groups[-1][0].trigger == fault.trigger:
            groups[-1].append(fault)
        else:
            groups.append([fault])
    if len(groups) != len(plan.repair_steps):
        raise NotTold(f"{len(groups)} moments of faults are planned and {len(plan.repair_steps)} repairs")
    return [tuple(group) for group in groups]


def _act(history: History, faults: tuple[PlannedFault, ...]) -> int:
    acts = [one.mono for fault in faults for one in history.select("fault.injecting", fault=fault.id)]
    if not acts:
        raise NotTold(f"no injection of fault {faults[0].id} is recorded")
    return min(acts)
