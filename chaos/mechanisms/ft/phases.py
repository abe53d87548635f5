"""The phases of a replica group's loss and return, by the votes of all groups and the records of the new processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chaos.evidence.facts import TRAIN, step_of
from chaos.evidence.timestamp import Timestamp, earliest, latest
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.all_ranks_phases import of_new
from chaos.mechanisms.ft.votes import VOTE, committed_after, votes
from chaos.plan.model import Plan


def phase_ends(plan: Plan, history: History, begin: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase after the fault at ``begin``, or why it is not known.

    A group may be started again, and even be back, while the others still stand still: then its phases end with it.
    """
    lost = _lost(plan, history, begin)
    before: Timestamp | None = None
    together = max((recovery.step or 0 for recovery in plan.response.recoveries), default=0)
    for name, end in _ends(plan, history, begin, lost, together):
        if isinstance(end, Timestamp) and before is not None and end.mono < before.mono:
            end = replace(before, where=end.where)
        before = end if isinstance(end, Timestamp) else before
        yield name, end


def _ends(
    plan: Plan, history: History, begin: int, lost: frozenset[int], together: int
) -> Iterator[tuple[str, Timestamp | str]]:
    # A group may commit the last common step after a fault that hits another one behind it.
    again = [vote for vote in committed_after(history, begin) if vote.rank not in lost and step_of(vote) > together]
    yield "stand-still", earliest(map(Timestamp.of, again[:1])) if again else "no committed step is recorded after it"
    stopped = _continued(plan, history, begin)
    back = list(stopped.values())
    yield "relaunch", _last(lost, [*of_new(history, "agent.start", begin), *back], "the start of a new process")
    yield "import", _last(lost, [*of_new(history, "group.ready", begin), *back], "a ready store of its own")
    returned = [
        *of_new(history, VOTE, begin),
        *(vote for vote in votes(history) if vote.rank in stopped and vote.mono >= stopped[vote.rank].mono),
    ]
    healed = [vote for vote in returned if vote.data.get("healed") is True]
    yield "heal", _last(lost, healed, "a state from another group")
    committed = [vote for vote in returned if vote.data.get("committed") is True]
    yield "first step", _last(lost, committed, "a committed step of the group that is back")


def _continued(plan: Plan, history: History, begin: int) -> dict[int | None, Event]:
    """Return, for each group that was stopped and must live on, the moment when its process was continued."""
    new = {rank for recovery in plan.response.recoveries for rank in recovery.restarted}
    return {
        rank: replace(event, rank=rank)
        for fault in plan.faults
        for rank in fault.ranks
        for event in history.select("fault.healed", fault=fault.id, attempt=TRAIN)
        if rank not in new and event.mono >= begin
    }


def _lost(plan: Plan, history: History, begin: int) -> frozenset[int]:
    """Return the groups that the faults since then hit, by their acts; those of the plan where no act says it."""
    hit = {event.rank for event in history.select("fault.injecting", attempt=TRAIN) if event.mono >= begin}
    known = frozenset(rank for rank in hit if rank is not None)
    return known or frozenset(rank for recovery in plan.response.recoveries for rank in recovery.copied)


def _last(lost: frozenset[int], events: list[Event], what: str) -> Timestamp | str:
    """Return the moment by which every lost group has its first such event."""
    firsts: dict[int, Event] = {}
    for event in events:
        if event.rank in lost:
            firsts.setdefault(event.rank, event)
    if not lost or len(firsts) < len(lost):
        return f"{what} is recorded for {len(firsts)} of {len(lost)} lost groups"
    return latest(map(Timestamp.of, firsts.values()))
