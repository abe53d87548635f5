"""Incidents: the faults of a schedule, sorted by the recovery that has to answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from chaos.plan.points import LAST_PHASE, PHASE_ORDER, Point
from chaos.plan.problems import Problems
from chaos.plan.recovery.steps import block_point
from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class Incident:
    """Faults that one recovery has to answer: they land before the training stops because of the first of them.

    ``inside`` are the faults made inside the recovery, at the entry of one of the SDK's handlers or while a checkpoint
    is loaded, in the order of the scenario. ``failed`` names the mechanisms tried on this incident before, in order,
    and ``spoilt`` the faults because of which they failed. ``replaced`` are ranks that got new processes meanwhile, and
    no state.
    """

    faults: tuple[Scheduled, ...]
    inside: tuple[Scheduled, ...] = ()
    failed: tuple[str, ...] = ()
    spoilt: tuple[Scheduled, ...] = ()
    replaced: tuple[int, ...] = ()

    @property
    def first(self) -> Scheduled:
        """The fault that stops the training; where the moment is open, the first fault that can."""
        exact = [fault for fault in self.faults if fault.moment.exact]
        return min(exact or self.faults, key=lambda fault: fault.moment.earliest)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the faults that land before the recovery begins."""
        return tuple(fault.fault.id for fault in self.faults)

    @property
    def hit(self) -> tuple[int, ...]:
        """The ranks that they hit."""
        return tuple(sorted({rank for fault in self.faults for rank in fault.fault.ranks}))

    @property
    def silent(self) -> frozenset[int]:
        """The ranks whose process has ended or stopped."""
        return frozenset(rank for fault in self.faults if fault.effect.silences for rank in fault.fault.ranks)

    def after(self, mechanism: str, consumed: Sequence[Scheduled]) -> Incident:
        """Return the incident left for the next mechanism when ``mechanism`` has failed by the faults ``consumed``."""
        rest = tuple(fault for fault in self.inside if fault not in consumed)
        return replace(self, inside=rest, failed=(*self.failed, mechanism), spoilt=(*self.spoilt, *consumed))


def during(faults: Sequence[Scheduled]) -> dict[str, list[Scheduled]]:
    """Return the faults made while a pause lasts, by the pause's id.

    Such a fault waits for the pause to land, and for nothing else.
    """
    pauses = {fault.fault.id: [fault] for fault in faults if fault.effect.pauses}
    by_pause: dict[str, list[Scheduled]] = {name: [] for name in pauses}
    for fault in faults:
        if fault.fault.trigger.keys() == {"after"} and fault.fault.trigger["after"] in by_pause:
            by_pause[fault.fault.trigger["after"]].append(fault)
    return by_pause


def incidents(faults: Sequence[Scheduled]) -> tuple[Incident, ...]:
    """Return the incidents of a schedule, in the order in which they come.

    A fault that nothing has to answer belongs to no incident.
    """
    paused = during(faults)
    waiting = [fault for inside in paused.values() for fault in inside]
    rest = sorted(
        (fault for fault in faults if fault.handler is None and _calls(fault) and fault not in waiting),
        key=lambda fault: (fault.moment.earliest, not fault.moment.exact),
    )
    known_incidents: list[Incident] = []
    while rest:
        landed = _together(rest)
        inside = (*paused.get(landed[0].fault.id, ()), *_in_rollback(landed[0], rest))
        known_incidents.append(Incident(landed, inside))
        rest = [fault for fault in rest if fault not in (*landed, *inside)]
    for fault in faults:
        if fault.handler is not None and known_incidents:
            index = _which(known_incidents, fault)
            known_incidents[index] = replace(known_incidents[index], inside=(*known_incidents[index].inside, fault))
    return tuple(known_incidents)


def _calls(fault: Scheduled) -> bool:
    """Return whether a mechanism has to answer the fault."""
    return fault.lethal or fault.raised or fault.repaired_by is not None or fault.effect.pauses


def _together(rest: Sequence[Scheduled]) -> tuple[Scheduled, ...]:
    """Return the first fault, and with it every loss that comes before the training stops, or at an open time."""
    if not rest[0].lethal:
        return (rest[0],)
    lethal = [fault for fault in rest if fault.lethal]
    block = block_point([fault.moment for fault in lethal])
    return tuple(fault for fault in lethal if not fault.moment.exact or block is None or fault.moment.earliest <= block)


def _in_rollback(first: Scheduled, rest: Sequence[Scheduled]) -> tuple[Scheduled, ...]:
    """Return the faults made in the rollback of an abnormal step, while the ranks load the checkpoint."""
    if first.effect.alters != "norm":
        return ()
    loading = Point(first.moment.earliest.step, PHASE_ORDER.index("checkpoint.load"))
    return tuple(fault for fault in rest if fault.lethal and fault.moment.exact and fault.moment.earliest == loading)


def _which(known_incidents: Sequence[Incident], fault: Scheduled) -> int:
    """Return the number of the incident whose recovery a fault at a handler belongs to.

    It is the incident of the fault that it waits for, else the first.
    """
    waits = {part["after"] for part in (fault.fault.trigger, *fault.fault.trigger.get("all", ())) if "after" in part}
    for index, incident in enumerate(known_incidents):
        if waits & {*incident.ids, *(other.fault.id for other in incident.inside)}:
            return index
    return 0


def check_apart(known_incidents: Sequence[Incident], problems: Problems) -> None:
    """Note incidents that are not separate: a rank can reach the second one before it blocks because of the first."""
    for earlier, later in pairwise(known_incidents):
        fault, other = earlier.first, later.first
        first, second = fault.moment.earliest, other.moment.earliest
        if not fault.raised and not other.raised:
            continue  # the first incident ends the job, or the mechanism that goes on declares its needs
        if other.moment.exact and fault.moment.exact and second > first.block and second.step > first.step:
            continue
        problems.add(
            f"{other.path}.trigger",
            f"fault {other.fault.id!r} at {second} is not apart from fault {fault.fault.id!r} "
            f"({problems.where(fault.path)}) at {first}: a rank may reach it before all ranks have stopped for the "
            "first repair, which is not yet supported by this version",
            text=str(second),
            hint=(
                f"use a point behind {max(first.block, Point(first.step, LAST_PHASE))}, or hit the ranks of "
                "both with one fault"
            ),
        )
