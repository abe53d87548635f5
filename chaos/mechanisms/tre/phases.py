"""The ends of the phases of a rollback (TRE): by the ranks' own records, since no controller takes part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chaos.evidence.facts import TRAIN, by_rank, step_of
from chaos.evidence.timestamp import Timestamp, latest
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


def phase_ends(plan: Plan, history: History, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield each phase of PHASES["TRE"] with the event that ends it, the last rank's; or why it is not known.

    ``after`` is the act of the fault, in nanoseconds of the monotonic clock.
    """
    goal = _abnormal_step(history, after)
    begins = {rank: _first(events, after) for rank, events in by_rank(history, "train.begin", TRAIN).items()}

    def replayed(least: int) -> Callable[[int, list[Event]], Event | None]:
        def find(rank: int, events: list[Event]) -> Event | None:
            begin = begins.get(rank)
            return begin and _first([event for event in events if step_of(event) >= least], begin.mono)

        return find

    def first(rank: int, events: list[Event]) -> Event | None:
        return _first(events, after)

    yield "detection", _last(plan, history, "load.begin", first)
    yield "load", _last(plan, history, "load.end", first)
    yield "first step", _last(plan, history, "step.end", replayed(1))
    yield "caught up", _last(plan, history, "step.end", replayed(goal)) if goal else "no abnormal step is recorded"


def _abnormal_step(history: History, after: int) -> int:
    """Return the step that the fault made abnormal, 0 where that is not recorded."""
    scaled = [event for event in history.select("fault.scaled", attempt=TRAIN) if event.mono >= after]
    return step_of(scaled[0]) if scaled else 0


def _first(events: list[Event], after: int) -> Event | None:
    return next((event for event in events if event.mono >= after), None)


def _last(plan: Plan, history: History, name: str, find: Callable[[int, list[Event]], Event | None]) -> Timestamp | str:
    events_by_rank = {
        rank: event for rank, events in by_rank(history, name, TRAIN).items() if (event := find(rank, events))
    }
    if len(events_by_rank) < plan.layout.ranks:
        return f"{name} in the rollback is recorded for {len(events_by_rank)} of {plan.layout.ranks} ranks"
    return latest(map(Timestamp.of, events_by_rank.values()))
