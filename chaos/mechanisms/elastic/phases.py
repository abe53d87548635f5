"""The phases of a restart of all ranks by torchrun, by the records of the launcher and the ranks."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.timestamp import Timestamp, earliest
from chaos.history.reader import History
from chaos.mechanisms.all_ranks_phases import (
    ENDED,
    STATE,
    all_ended,
    caught_up,
    ends_after,
    first_healthy_end,
    last_of_ranks,
    of_new,
)
from chaos.plan.model import Plan

GROUP_READY = "group.ready"
"""Recorded by the agent when ``init_process_group`` has returned."""


def phase_ends(plan: Plan, history: History, begin: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase after the fault at ``begin``, or why it is not known."""
    yield "detection", _detected(plan, history, begin)
    yield "stop", all_ended(plan, history, begin)
    started = of_new(history, "agent.start", begin)
    yield "relaunch", earliest(map(Timestamp.of, started)) if started else "no start of a new process is recorded"
    yield "import", _imported(plan, history, begin)
    for name, (event, what) in (("load", STATE), ("first step", ENDED)):
        yield name, last_of_ranks(plan, of_new(history, event, begin), what)
    yield "caught up", caught_up(plan, history, begin)


def _detected(plan: Plan, history: History, begin: int) -> Timestamp | str:
    """Return the moment when torchrun notices the fault: the first end of a rank that no fault hit.

    Where a fault hits every rank, it is the first end that torchrun has collected.
    """
    hit = {event.rank for event in history.select("fault.injecting") if event.mono >= begin}
    ends = ends_after(history, begin)
    if ends and len(hit) >= plan.layout.ranks:
        return earliest(map(Timestamp.of, ends))
    return first_healthy_end(history, begin)


def _imported(plan: Plan, history: History, begin: int) -> Timestamp | str:
    """Return the moment when the process group is ready or, without a record of that, when the first load begins."""
    ready = last_of_ranks(plan, of_new(history, GROUP_READY, begin), "a ready process group")
    if isinstance(ready, Timestamp):
        return ready
    loads = of_new(history, "load.begin", begin)
    return earliest(map(Timestamp.of, loads)) if loads else f"{ready}, and no load of a checkpoint"
