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
        windows = recovery_windows(plan, history)
    except Ambiguous as reason:
        collector.unknown(IN_ORDER, str(reason), line)
        collector.close()
        return
    restarted = {rank for window in windows for rank in window.restarted}
    continued = {rank for window in windows for rank in window.copied} - restarted
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
            back = _steps_back(history, steps) if rank in continued else None
            if back == set():
                text = f"the step of the state with which rank {rank} was back is not recorded"
                collector.unknown(FROM, text, line, data=about(rank))
            _judge_order(rank, steps, line, collector, from_first=number == 0, back=back)
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
    collector.settle(FROM, f"{len(restarted | continued)} ranks do", line)


def _steps_back(history: History, steps: list[Event]) -> set[int]:
    """Return the steps that a process may train next after it got a state while it lived: those after the states."""
    pid, rank = steps[0].pid, steps[0].rank
    begins = [event for event in history.select("train.begin", attempt=TRAIN, rank=rank) if event.pid == pid]
    states = (event.data.get("initial_step") for event in begins[1:])
    return {state + 1 for state in states if isinstance(state, int)}


def _by_process(ends: list[Event]) -> list[list[Event]]:
    """Return the ended steps of a rank by its process, in the order of the processes."""
    by_pid: dict[int | None, list[Event]] = {}
    for end in ends:
        by_pid.setdefault(end.pid, []).append(end)
    return list(by_pid.values())


def _judge_order(
    rank: int, steps: list[Event], line: str, collector: Collector, *, from_first: bool, back: set[int] | None
) -> None:
    """Judge the steps of a process. ``back`` are those that it may train after a gap; None where it has none."""
    if from_first and step_of(steps[0]) != 1:
        text = f"rank {rank} began with step {step_of(steps[0])}"
        collector.fail(IN_ORDER, text, line, steps[0].source, data=about(rank, step=step_of(steps[0])))
    for before, after in pairwise(steps):
        # A gap without a record of the state behind it is said to be unknown already.
        gap = step_of(after) > step_of(before) and back is not None and (not back or step_of(after) in back)
        if step_of(after) != step_of(before) + 1 and not gap:
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
