"""The ends of the phases of a restart of all ranks, by the records of the launcher and the ranks."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.evidence.facts import TRAIN, processes, step_of
from chaos.evidence.timestamp import Timestamp, earliest, latest
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

STATE = ("train.begin", "the beginning of training in the new process")
"""The event by which a new process has its state, in words."""

ENDED = ("step.end", "the end of the first step of the new process")
"""The event that ends the first step of a new process, in words."""


def started_again(history: History) -> bool:
    """Return whether every rank of the faulted launch had more than one process."""
    by_rank = processes(history, TRAIN)
    return bool(by_rank) and all(len(pids) > 1 for pids in by_rank.values())


def ends_after(history: History, begin: int) -> list[Event]:
    """Return the ends since ``begin`` that the launcher has collected, of processes that were there before it.

    The end of a new process would stand for the end of an old one that is not recorded.
    """
    starts = (*history.select("agent.start", attempt=TRAIN), *history.select("rank.found", attempt=TRAIN))
    new = {(fact.rank, fact.pid) for fact in starts if fact.mono >= begin}
    ends = [event for event in history.select("child.exit", attempt=TRAIN) if event.mono >= begin]
    return [event for event in ends if (event.data.get("child_rank"), event.data.get("child_pid")) not in new]


def first_healthy_end(history: History, begin: int) -> Timestamp | str:
    """Return the first end of a rank that no fault hit, or why it is not known."""
    hit = {event.rank for event in history.select("fault.injecting", attempt=TRAIN) if event.mono >= begin}
    healthy = [event for event in ends_after(history, begin) if event.data.get("child_rank") not in hit]
    return earliest(map(Timestamp.of, healthy)) if healthy else "no end of a rank that no fault hit is recorded"


def all_ended(plan: Plan, history: History, begin: int) -> Timestamp | str:
    """Return the moment by which every rank's process before the restart has ended."""
    return last_of_ranks(plan, ends_after(history, begin), "the end", key="child_rank")


def of_new(history: History, event: str, begin: int) -> list[Event]:
    """Return the events of processes that were started after the fault."""
    started = history.select("agent.start", attempt=TRAIN)
    new = {(fact.rank, fact.pid) for fact in started if fact.mono >= begin}  # nodes may have PIDs of their own
    return [
        fact for fact in history.select(event, attempt=TRAIN) if fact.mono >= begin and (fact.rank, fact.pid) in new
    ]


def last_of_ranks(plan: Plan, events: Iterable[Event], what: str, key: str = "") -> Timestamp | str:
    """Return the moment by which every rank has its first such event."""
    firsts: dict[object, Event] = {}
    for event in events:
        firsts.setdefault(event.data.get(key) if key else event.rank, event)
    if len(firsts) < plan.layout.ranks:
        return f"{what} is recorded for {len(firsts)} of {plan.layout.ranks} ranks"
    return latest(map(Timestamp.of, firsts.values()))


def caught_up(plan: Plan, history: History, begin: int) -> Timestamp | str:
    """Return the moment when every rank has ended the highest interrupted step: nothing is lost any more."""
    begun = [step_of(event) for event in history.select("step.begin", attempt=TRAIN) if event.mono < begin]
    if not begun:
        return "no step before the fault is recorded"
    goal = max(begun)
    again = [event for event in of_new(history, "step.end", begin) if step_of(event) >= goal]
    return last_of_ranks(plan, again, f"step {goal}, which the fault interrupted,")
