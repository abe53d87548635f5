"""Part of check ``mechanism``: only the ranks that the plan names get a new process, and each gets one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.base.rank_sets import spans
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, by_rank, places, processes, text_list
from chaos.evidence.recovery_windows import goes_on, trains_to_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

SAME = "every rank keeps its process from the beginning to the end"


def judge_processes(plan: Plan, history: History, collector: Collector) -> None:
    """Judge how many processes each rank had in each launch."""
    line = line_of(plan, "mechanism")
    expected = _expected(plan)
    if not goes_on(plan) and not any(recovery.restarted for recovery in plan.response.recoveries):
        _judge_replaced(history, (TRAIN, RESUME), collector, line)
        return
    _judge_replaced(history, (RESUME,), collector, line)
    known: dict[int, dict[int, Event]] = {}
    for event in history.select(attempt=TRAIN):
        if (
            event.rank is not None
            and event.pid is not None
            and (event.writer == "agent" or event.event.startswith("rank."))
        ):
            known.setdefault(event.rank, {}).setdefault(event.pid, event)
    for rank, pid, event in _ends_by_launcher(history, TRAIN):
        known.setdefault(rank, {}).setdefault(pid, event)
    started, identified, ended = (by_rank(history, name, TRAIN) for name in ("agent.start", "rank.found", "rank.exit"))
    for rank in range(plan.layout.ranks):
        least = 1 + sum(rank in recovery.restarted for recovery in plan.response.goes_on)
        most = least + sum(rank in recovery.restarted for recovery in plan.response.recoveries if not recovery.succeeds)
        processes_known = dict(sorted(known.get(rank, {}).items(), key=lambda item: item[1].mono))
        if len(processes_known) > most:
            observation = f"rank {rank} was replaced: processes {text_list(processes_known)}"
            collector.fail(expected, observation, line, *places(processes_known.values()), data=about(rank))
        elif len(started.get(rank, [])) > most:
            observation = f"rank {rank} was started {len(started[rank])} times"
            collector.fail(expected, observation, line, *places(started[rank]), data=about(rank))
        elif 0 < len(processes_known) < least:
            observation = f"rank {rank} was not started again: process {text_list(processes_known)} is its only one"
            collector.fail(
                expected, observation, line, *places(processes_known.values()), data=about(rank, pids=processes_known)
            )
        for what, events in (("start", started), ("identification", identified), ("exit", ended)):
            if not events.get(rank) or (
                trains_to_the_end(plan) and len(events[rank]) < min(len(processes_known), least)
            ):
                collector.unknown(expected, f"no {what} of rank {rank} was recorded", line, data=about(rank))
    collector.settle(expected, f"{plan.layout.ranks} ranks did", line)


def _expected(plan: Plan) -> str:
    restarted = sorted({rank for recovery in plan.response.recoveries for rank in recovery.restarted})
    if not restarted:
        return SAME
    if len(restarted) == plan.layout.ranks:
        return "every rank gets a new process each time that the plan says so, and no other time"
    return f"only ranks {spans(restarted)} get a new process, the others keep theirs"


def _judge_replaced(history: History, attempts: Sequence[str], collector: Collector, line: str) -> None:
    """Judge that no rank is started a second time within a launch: that would be rescheduling."""
    for attempt in attempts:
        recorded_pids = processes(history, attempt)
        others = _of_supervisor(history, attempt)
        for rank, pid, event in _ends_by_launcher(history, attempt):
            if (pid, event.data.get("start_time")) not in others and pid not in recorded_pids.setdefault(rank, []):
                recorded_pids[rank].append(pid)
        for rank, pids in sorted(recorded_pids.items()):
            if len(pids) > 1:
                starts = history.select("agent.start", attempt=attempt, rank=rank)
                observation = f"rank {rank} was started again in attempt {attempt}: processes {text_list(pids)}"
                collector.fail(
                    "no rank is started again within a launch", observation, line, *places(starts), data=about(rank)
                )


def _of_supervisor(history: History, attempt: str) -> set[tuple[object, object]]:
    """Return processes that the job's own supervisor has started for the next attempt, by PID and start time.

    The supervisor's agent records their ends too, under the attempt in which the supervisor was started.
    """
    if attempt == RESUME or not any(start.data.get("by") for start in history.select("attempt.start", attempt=RESUME)):
        return set()
    return {(event.pid, event.data.get("start_time")) for event in history.select("rank.found", attempt=RESUME)}


def _ends_by_launcher(history: History, attempt: str) -> Iterator[tuple[int, int, Event]]:
    """Yield the processes of ranks whose end the launcher recorded.

    A process may have ended before any other witness saw it.
    """
    for event in history.select("child.exit", attempt=attempt):
        rank, pid = event.data.get("child_rank"), event.data.get("child_pid")
        if isinstance(rank, int) and isinstance(pid, int):
            yield rank, pid, event
