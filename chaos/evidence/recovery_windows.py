"""The time of each planned recovery in a run. Facts only; nothing here judges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import ENDING, Recovery
from chaos.plan.recovery.mechanism import PAUSING, REJOINING

_JUDGED = ("handler.enter", "handler.exit", "train.begin", "agent.start", "load.begin", "load.end")
"""The events whose time rules need to assign them to a recovery."""

_JUDGED_OF_PAUSES = (*_JUDGED, "pause.enter")
"""The same where the plan has a pause. Elsewhere ranks pass the point after every step, and no rule needs the time."""


class Ambiguous(Exception):
    """The recovery that something belongs to is ambiguous. The text names the missing fact."""


@dataclass(frozen=True)
class Window:
    """One planned recovery and its time.

    ``number`` counts from 1. ``recovery`` is the one that must succeed, None where every tried one fails; ``tried`` are
    the recoveries that must be tried before it and fail. It lasts from ``begin``, the act of its first fault, to
    ``end``, the act of the next one's first fault (None: the end of the run), in nanoseconds of the monotonic clock.
    """

    number: int
    tried: tuple[Recovery, ...]
    recovery: Recovery | None
    faults: tuple[PlannedFault, ...]
    begin: int
    end: int | None

    def holds(self, event: Event) -> bool:
        """Return whether the event falls within this recovery."""
        return self.begin <= event.mono and (self.end is None or event.mono < self.end)

    def of(self, events: Iterable[Event]) -> list[Event]:
        """Keep the events within this recovery."""
        return [event for event in events if self.holds(event)]

    @property
    def all(self) -> tuple[Recovery, ...]:
        """All recoveries that are tried, in order."""
        return self.tried if self.recovery is None else (*self.tried, self.recovery)

    @property
    def step(self) -> int:
        """The last step that all ranks hold after it. Only where training goes on within the launch."""
        assert self.recovery is not None and self.recovery.step is not None
        return self.recovery.step

    @property
    def hit(self) -> frozenset[int]:
        """Ranks that its faults hit."""
        return frozenset(rank for fault in self.faults for rank in fault.ranks)

    @property
    def restarted(self) -> frozenset[int]:
        """Ranks that must get a new process."""
        return frozenset(() if self.recovery is None else self.recovery.restarted)

    @property
    def copied(self) -> frozenset[int]:
        """Ranks whose state must come from a replica."""
        return frozenset(() if self.recovery is None else self.recovery.copied)


def goes_on(plan: Plan) -> bool:
    """Return whether a recovery lets the training go on within the launch."""
    return bool(plan.response.goes_on)


def rejoining(plan: Plan) -> bool:
    """Return whether lost ranks come back at a later step, while the others train on without them."""
    return any(recovery.mechanism in REJOINING for recovery in plan.response.goes_on)


def trains_to_the_end(plan: Plan) -> bool:
    """Return whether the faulted launch itself trains its last step because of a recovery."""
    return plan.response.mechanism is not None and plan.response.mechanism not in ENDING | {"none"}


def reaches_the_end(plan: Plan) -> bool:
    """Return whether the faulted launch must train its last step: because of a recovery, or since nothing stops it."""
    return plan.response.mechanism is None or trains_to_the_end(plan)


def chains(plan: Plan) -> list[list[Recovery]]:
    """Return the planned recoveries, each with the failing ones that are tried before it, in order."""
    grouped: list[list[Recovery]] = [[]]
    for recovery in plan.response.recoveries:
        grouped[-1].append(recovery)
        if recovery.succeeds:
            grouped.append([])
    return [chain for chain in grouped if chain]


def recovery_windows(plan: Plan, history: History) -> list[Window]:
    """Return the planned recoveries with their times.

    Raises Ambiguous when a fault has no time, or they are out of order.
    """
    grouped = chains(plan)
    if not grouped:
        return []
    known = {fault.id: fault for fault in plan.faults}
    fault_groups = [tuple(known[name] for name in chain[0].faults if name in known) for chain in grouped]
    begins = [_act(history, faults) for faults in fault_groups]
    if begins != sorted(begins):
        raise Ambiguous("the faults were not made in the order of the plan")
    ends = [*begins[1:], _unanswered(plan, history)]
    paused = any(recovery.mechanism in PAUSING for recovery in plan.response.recoveries)
    borders = [begin for begin in (*begins, ends[-1]) if begin is not None]
    _refuse_ambiguous(history, _JUDGED_OF_PAUSES if paused else _JUDGED, borders)
    windows = []
    for number, (chain, faults, begin, end) in enumerate(zip(grouped, fault_groups, begins, ends, strict=True), 1):
        last = chain[-1]
        tried = tuple(chain[:-1]) if last.succeeds else tuple(chain)
        windows.append(Window(number, tried, last if last.succeeds else None, faults, begin, end))
    return windows


def ending_faults(plan: Plan) -> list[PlannedFault]:
    """Return the faults that no recovery answers with success, and that end the job."""
    answered = {name for recovery in plan.response.recoveries if recovery.succeeds for name in recovery.faults}
    open_faults = [fault for fault in plan.faults if fault.id not in answered]
    return [fault for fault in open_faults if fault.effect.stops_training or fault.effect.asks_to_end] or open_faults


def end_of_job(plan: Plan, history: History) -> Event:
    """Return the act of the first fault that ends the job, since no recovery that succeeds answers it.

    Raises Ambiguous when none is recorded.
    """
    acts = [event for fault in ending_faults(plan) for event in history.select("fault.injecting", fault=fault.id)]
    if not acts:
        raise Ambiguous("no injection of a fault that ends the job is recorded")
    return min(acts, key=lambda event: event.mono)


def replayed_windows(plan: Plan, history: History) -> list[Window]:
    """Return the windows after which every rank begins to train again within the launch."""
    return [
        window
        for window in recovery_windows(plan, history)
        if window.recovery is not None and window.recovery.mechanism not in ENDING | PAUSING | REJOINING
    ]


def _refuse_ambiguous(history: History, judged: tuple[str, ...], borders: list[int]) -> None:
    """Raise Ambiguous where two hosts' clocks leave open in which recovery an event happened.

    Only events that rules read count, and these come after their fault has been noticed; steps end all the time.
    """
    near = [
        event
        for name in judged
        for event in history.select(name)
        if event.error and any(abs(event.mono - border) <= event.error for border in borders)
    ]
    if near:
        first = near[0]
        raise Ambiguous(
            f"the clocks of two hosts do not show whether {first.event} of rank {first.rank} ({first.source}) was "
            f"before or after a fault: they may be wrong by {first.error / 1e6:.3f} ms"
        )


def _act(history: History, faults: tuple[PlannedFault, ...]) -> int:
    acts = [event.mono for fault in faults for event in history.select("fault.injecting", fault=fault.id)]
    if not acts:
        raise Ambiguous(f"no injection of fault {faults[0].id if faults else 'of a recovery'} is recorded")
    return min(acts)


def _unanswered(plan: Plan, history: History) -> int | None:
    """Return the time of the first fault that no recovery answers and that ends the job."""
    if plan.response.mechanism != "none":
        return None
    answered = {name for recovery in plan.response.recoveries for name in recovery.faults}
    rest = [fault for fault in plan.faults if fault.id not in answered and not fault.effect.harmless]
    inside = [fault for fault in rest if "handler" in str(fault.trigger)]
    acts = [
        event.mono
        for fault in rest
        if fault not in inside
        for event in history.select("fault.injecting", fault=fault.id)
    ]
    return min(acts, default=None)
