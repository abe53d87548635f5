"""Part of check ``resume``: ranks that go on from different steps, where no single step to resume from is known.

A difference that is proven is a failure: ranks began with different steps, or held the states of different checkpoints.
"""

from __future__ import annotations

from chaos.checks.resume.damage_met import UNDAMAGED
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import state_at_resume, step_at_resume
from chaos.evidence.checkpoints.damage import is_damaged
from chaos.evidence.checkpoints.owner import located
from chaos.evidence.checkpoints.periodic import by_path, counted, every_file
from chaos.evidence.checkpoints.whole import holds
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, by_rank, places, step_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.plan.model import Plan

TOGETHER = "all ranks go on from one step"


def judge_apart(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Fail where two ranks are proven to go on from different steps. Say nothing where that is not proven."""
    begun = {rank: step_of(begins[0]) for rank, begins in by_rank(history, "step.begin", RESUME).items()}
    if len(set(begun.values())) > 1:
        low, high = (min(begun, key=lambda rank: (side * begun[rank], rank)) for side in (1, -1))
        observation = f"rank {low} began with step {begun[low]}, rank {high} with step {begun[high]}"
        first = [history.select("step.begin", attempt=RESUME, rank=rank)[0] for rank in (low, high)]
        collector.fail(TOGETHER, observation, *places(first), data=about((low, high), step=begun[low]))
        return
    held = {rank: state for rank in range(plan.layout.ranks) if (state := _held(plan, history, artifacts, rank))}
    low, high = (min(held, key=lambda rank: (side * held[rank][0], rank), default=0) for side in (1, -1))
    if held and held[low][0] != held[high][0]:
        observation = f"rank {low} held the checkpoint of step {held[low][0]}, rank {high} that of step {held[high][0]}"
        first = [held[rank][1] for rank in (low, high)]
        collector.fail(TOGETHER, observation, *places(first), data=about((low, high), step=held[low][0]))


def judge_damaged(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Fail where all loads of a rank that count are of damaged files, whatever the others have loaded."""
    files = by_path(every_file(history, artifacts))
    for rank in range(plan.layout.ranks):
        loads = counted(plan, history, artifacts, files, rank)
        paths = [str(load.data.get("path")) for load in loads]
        if paths and all(is_damaged(history, path) for path in paths):
            where = artifacts.recorded(paths[0])
            collector.fail(UNDAMAGED, f"rank {rank} loaded {where}", *places(loads[:1]), data=about(rank, file=where))


def _held(plan: Plan, history: History, artifacts: Artifacts, rank: int) -> tuple[int, Event] | None:
    """Return the last update before the step of the file whose whole content the rank held, with the rank's record.

    None where its loads, or its state before the first step, do not show one step.
    """
    initial = history.first("initial", attempt=RESUME, rank=rank)
    parameters = initial.data.get("parameters") if initial is not None else None
    if initial is None or not isinstance(parameters, dict):
        return None
    files = by_path(every_file(history, artifacts))
    steps: set[int | None] = set()
    for load in counted(plan, history, artifacts, files, rank):
        path = located(history, artifacts, str(load.data.get("path")))
        file = None if path is None else files.get(path)
        try:
            whole = file is not None and holds(file, state_at_resume(history, artifacts, file), parameters)
            steps.add(step_at_resume(history, artifacts, file) if file is not None and whole else None)
        except CheckpointError:
            return None
    step = steps.pop() if len(steps) == 1 else None
    return None if step is None else (step - step % artifacts.steps_per_update, initial)
