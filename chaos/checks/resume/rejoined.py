"""Part of check ``resume``: ranks that come back later train on from where the others are, and these lose no step."""

from __future__ import annotations

from itertools import pairwise

from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, by_rank, step_of
from chaos.evidence.recovery_windows import Ambiguous, recovery_windows
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

IN_ORDER = "every process trains its steps once and in order, up to the last step"
FROM = "a process that has come back trains first the step after the step of its state"


def judge_rejoined(plan: Plan, history: History, collector: Collector) -> None:
    """Judge the steps of every process of the faulted launch."""
    line = line_of(plan, "mechanism")
    try:
        restarted = {rank for window in recovery_windows(plan, history) for rank in window.restarted}
    except Ambiguous as reason:
        collector.unknown(IN_ORDER, str(reason), line)
        collector.close()
        return
    ends = by_rank(history, "step.end", TRAIN)
    for rank in range(plan.layout.ranks):
        processes = _by_process(ends.get(rank, []))
        expected = 2 if rank in restarted else 1
        if len(processes) < expected:
            text = f"steps of {len(processes)} processes of rank {rank} are recorded, of {expected}"
            collector.unknown(IN_ORDER, text, line, data=about(rank))
        if len(processes) > expected:
            first = processes[expected][0]
            text = f"rank {rank} trained steps in {len(processes)} processes, where the plan has {expected}"
            collector.fail(IN_ORDER, text, line, first.source, data=about(rank, step=step_of(first)))
        for number, steps in enumerate(processes):
            _judge_order(rank, steps, line, collector, from_first=number == 0)
        if processes and step_of(processes[-1][-1]) != plan.training.last_step:
            last = processes[-1][-1]
            text = f"the last step that rank {rank} trained is step {step_of(last)}"
            data = about(
                rank, step=step_of(last), quantity="step", expected=plan.training.last_step, seen=step_of(last)
            )
            collector.fail(IN_ORDER, text, line, last.source, data=data)
        if rank in restarted:
            _judge_first(history, rank, processes[1:], line, collector)
    collector.settle(IN_ORDER, f"{plan.layout.ranks} ranks do", line)
    collector.settle(FROM, f"{len(restarted)} ranks do", line)


def _by_process(ends: list[Event]) -> list[list[Event]]:
    """Return the ended steps of a rank by its process, in the order of the processes."""
    by_pid: dict[int | None, list[Event]] = {}
    for end in ends:
        by_pid.setdefault(end.pid, []).append(end)
    return list(by_pid.values())


def _judge_order(rank: int, steps: list[Event], line: str, collector: Collector, *, from_first: bool) -> None:
    if from_first and step_of(steps[0]) != 1:
        text = f"rank {rank} began with step {step_of(steps[0])}"
        collector.fail(IN_ORDER, text, line, steps[0].source, data=about(rank, step=step_of(steps[0])))
    for before, after in pairwise(steps):
        if step_of(after) != step_of(before) + 1:
            text = f"rank {rank} trained step {step_of(after)} after step {step_of(before)}"
            collector.fail(IN_ORDER, text, line, before.source, after.source, data=about(rank, step=step_of(after)))
            return


def _judge_first(history: History, rank: int, processes: list[list[Event]], line: str, collector: Collector) -> None:
    for steps in processes:
        begin = next((event for event in history.select("train.begin", rank=rank) if event.pid == steps[0].pid), None)
        initial = None if begin is None else begin.data.get("initial_step")
        if begin is None or not isinstance(initial, int):
            text = f"the step of the state of rank {rank}'s process {steps[0].pid} is not recorded"
            collector.unknown(FROM, text, line, steps[0].source, data=about(rank))
        elif step_of(steps[0]) != initial + 1:
            text = f"rank {rank} has the state of step {initial}, and trained step {step_of(steps[0])} first"
            collector.fail(FROM, text, line, begin.source, steps[0].source, data=about(rank, step=step_of(steps[0])))
