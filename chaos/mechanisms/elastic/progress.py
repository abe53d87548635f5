"""Part of check ``mechanism``: a start of all ranks by torchrun that no fault hits gets further than the one before.

A script that fails on its way back, at its checkpoint or at a step, is started again until the restarts are used up.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, by_rank, exit_status, step_of
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.elastic.plan import NAME
from chaos.plan.model import Plan

EXPECTED = "a start of all ranks that no fault hits trains further than the start before it"

Start = Mapping[int, Event]
"""The event by which each rank's process of one start of all ranks has begun, by rank."""


def judge_progress(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the starts of the faulted launch that failed. Says nothing where torchrun started no rank again."""
    del artifacts
    if NAME not in plan.fault_tolerance.protection:
        return
    starts = _starts(plan, history)
    if len(starts) < 2:
        return
    line = line_of(plan, "mechanism")
    reached = [_last_step(history, start) for start in starts]
    for index, start in enumerate(starts[1:], 1):
        failed = _failed(history, start)
        if failed is None or _is_hit(history, start) or reached[index] > max(reached[:index]):
            continue
        text = (
            f"start {index + 1} came {_to(reached[index])} and ended without a fault (rank {failed.rank}: "
            f"{exit_status(failed)}); the starts before had come {_to(max(reached[:index]))}"
        )
        data = about(failed.rank, step=reached[index] or None, mechanism=NAME)
        collector.fail(EXPECTED, text, line, failed.source, data=data)
    collector.settle(EXPECTED, f"{len(starts)} starts", line)


def _starts(plan: Plan, history: History) -> list[Start]:
    """Return the starts of all ranks, in order; none where a rank has recorded no start."""
    by_time = by_rank(history, "agent.start", TRAIN)
    if len(by_time) < plan.layout.ranks:
        return []
    number = min(len(events) for events in by_time.values())
    return [{rank: events[index] for rank, events in by_time.items()} for index in range(number)]


def _last_step(history: History, start: Start) -> int:
    """Return the last step that any of these processes has ended; 0 for none."""
    ends = (
        step_of(end)
        for rank, begun in start.items()
        for end in history.select("step.end", attempt=TRAIN, rank=rank, pid=begun.pid)
    )
    return max(ends, default=0)


def _failed(history: History, start: Start) -> Event | None:
    """Return the first end of one of these processes, if it was a failure."""
    ends = [
        end
        for rank, begun in start.items()
        for end in history.select("rank.exit", attempt=TRAIN, rank=rank, pid=begun.pid)
        if end.data.get("code") != 0
    ]
    return min(ends, key=lambda end: end.mono, default=None)


def _is_hit(history: History, start: Start) -> bool:
    """Return whether a fault hit one of these processes."""
    acts = history.select("fault.injecting", attempt=TRAIN)
    return any((act.rank, act.pid) == (rank, begun.pid) for act in acts for rank, begun in start.items())


def _to(step: int) -> str:
    return f"to step {step}" if step else "to no step"
