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
    last_of_ranks,
    of_new,
)
from chaos.plan.model import Plan

GROUP_READY = "group.ready"
"""Recorded by the agent when ``init_process_group`` has returned."""


def phase_ends(plan: Plan, history: History, begin: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase after the fault at ``begin``, or why it is not known."""
    ended = all_ended(plan, history, begin)
    yield "detection", ended if isinstance(ended, str) else _detected(history, begin)
    yield "stop", ended
    started = of_new(history, "agent.start", begin)
    yield "relaunch", earliest(map(Timestamp.of, started)) if started else "no start of a new process is recorded"
    yield "import", _imported(plan, history, begin)
    for name, (event, what) in (("load", STATE), ("first step", ENDED)):
        yield name, last_of_ranks(plan, of_new(history, event, begin), what)
    yield "caught up", caught_up(plan, history, begin)


def _detected(history: History, begin: int) -> Timestamp | str:
    """Return the moment when torchrun notices the fault: the first failed end of a rank that it has collected.

    It sends SIGTERM to the others at once. How long they take to end is no part of it: a script may handle the signal.
    A rank that ends with code 0 has not failed for torchrun (api.py, PyTorch 2.13). Where an end is missing the first
    one may be: another node notices a fault seconds later.
    """
    failed = [event for event in ends_after(history, begin) if event.data.get("code") != 0]
    return earliest(map(Timestamp.of, failed)) if failed else "no failed end of a rank is recorded"


def _imported(plan: Plan, history: History, begin: int) -> Timestamp | str:
    """Return the moment when the process group is ready or, without a record of that, when the first load begins."""
    ready = last_of_ranks(plan, of_new(history, GROUP_READY, begin), "a ready process group")
    if isinstance(ready, Timestamp):
        return ready
    loads = of_new(history, "load.begin", begin)
    return earliest(map(Timestamp.of, loads)) if loads else f"{ready}, and no load of a checkpoint"
