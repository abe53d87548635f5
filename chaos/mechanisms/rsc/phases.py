"""The phases of a restart of all ranks (RSC), by the records of the launcher and the ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.evidence.facts import TRAIN, processes, step_of
from chaos.evidence.timestamp import Timestamp, earliest, latest
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


def started_again(history: History) -> bool:
    """Return whether every rank of the faulted launch had more than one process."""
    by_rank = processes(history, TRAIN)
    return bool(by_rank) and all(len(pids) > 1 for pids in by_rank.values())


def phase_ends(plan: Plan, history: History, begin: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase after the fault at ``begin``, or why it is not known."""
    hit = {event.rank for event in history.select("fault.injecting", attempt=TRAIN) if event.mono >= begin}
    ends = [event for event in history.select("child.exit", attempt=TRAIN) if event.mono >= begin]
    healthy = [event for event in ends if event.data.get("child_rank") not in hit]
    first = earliest(map(Timestamp.of, healthy)) if healthy else "no end of a rank that no fault hit is recorded"
    yield "detection", first
    yield "stop", _last_of_ranks(plan, ends, "the end", key="child_rank")
    for name, event, what in (
        ("relaunch", "agent.start", "the start of the new process"),
        ("load", "train.begin", "the beginning of training in the new process"),
        ("compile", "step.begin", "the first step of the new process"),
        ("first step", "step.end", "the end of the first step of the new process"),
    ):
        yield name, _last_of_ranks(plan, _of_new(history, event, begin), what)
    yield "caught up", _caught_up(plan, history, begin)


def _of_new(history: History, event: str, begin: int) -> list[Event]:
    """Return the events of processes that were started after the fault."""
    started = history.select("agent.start", attempt=TRAIN)
    new = {(fact.rank, fact.pid) for fact in started if fact.mono >= begin}  # nodes may have PIDs of their own
    return [
        fact for fact in history.select(event, attempt=TRAIN) if fact.mono >= begin and (fact.rank, fact.pid) in new
    ]


def _last_of_ranks(plan: Plan, events: Iterable[Event], what: str, key: str = "") -> Timestamp | str:
    """Return the moment by which every rank has its first such event."""
    firsts: dict[object, Event] = {}
    for event in events:
        firsts.setdefault(event.data.get(key) if key else event.rank, event)
    if len(firsts) < plan.layout.ranks:
        return f"{what} is recorded for {len(firsts)} of {plan.layout.ranks} ranks"
    return latest(map(Timestamp.of, firsts.values()))


def _caught_up(plan: Plan, history: History, begin: int) -> Timestamp | str:
    """Return the moment when every rank has ended the highest interrupted step: nothing is lost any more."""
    begun = [step_of(event) for event in history.select("step.begin", attempt=TRAIN) if event.mono < begin]
    if not begun:
        return "no step before the fault is recorded"
    goal = max(begun)
    again = [event for event in _of_new(history, "step.end", begin) if step_of(event) >= goal]
    return _last_of_ranks(plan, again, f"step {goal}, which the fault interrupted,")
