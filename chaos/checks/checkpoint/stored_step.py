"""Part of check ``checkpoint``: the step inside a file is that of the save, of its rank, and of all other files."""

from __future__ import annotations

from dataclasses import replace

from chaos.checks.checkpoint.file_names import judge_names
from chaos.checks.checkpoint.places import paths_of
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.checkpoints.saved import stored_step
from chaos.evidence.checkpoints.stored import COUNTER, STEP, counted
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, last_trained, places, step_of, text_list
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan

APPENDED = ("epoch_num", "step_num", "cur_rank", "batch_num")
"""The entries that MindSpore's own end-of-life save appends (2.7 to 2.10), behind the parameters."""


def judge_step(
    plan: Plan, history: History, artifacts: Artifacts, file: OwnedCheckpoint, state: SavedState, collector: Collector
) -> None:
    """Judge the step inside a file by the history, the plan and the names of the file."""
    assert plan.checkpoint is not None
    where = artifacts.relative(file.path)
    every = artifacts.steps_per_update
    stored = {name: state.numbers[name] for name in (STEP, COUNTER) if name in state.numbers}
    if not stored:
        collector.fail(
            "the step is stored inside",
            f"rank {file.rank}'s file holds neither step_num nor global_step",
            where,
            data=about(file.rank, file=where),
        )
        return
    lacking = [name for name in APPENDED if name not in state.numbers]
    if file.directory_step is not None and lacking:
        observation = f"rank {file.rank}'s file lacks {text_list(lacking)}: it was cut off, or another program wrote it"
        collector.fail(
            f"the file holds what the save appends: {text_list(APPENDED)}",
            observation,
            where,
            data=about(file.rank, file=where, parameters=lacking),
        )
    last = last_trained(history, file.rank)
    if last is None:
        collector.unknown(
            "the last trained step of the saving rank is known",
            f"no step of rank {file.rank} has ended",
            where,
            data=about(file.rank, file=where),
        )
    _judge_stored(plan, file, stored, last, every, where, collector)
    step = stored_step(history, artifacts, file)
    if step is None:
        observation = f"rank {file.rank}'s file holds global_step {stored[COUNTER]}, with {every} steps for each update"
        collector.unknown(
            "the step is stored inside",
            f"{observation}, and which of these steps it holds is unknown",
            where,
            data=about(file.rank, file=where),
        )
        return
    judge_names(plan, file, state, step, collector, where, every)
    _judge_save_events(history, file, step, collector, where)


def _judge_stored(
    plan: Plan,
    file: OwnedCheckpoint,
    stored: dict[str, int],
    last: Event | None,
    every: int,
    where: str,
    collector: Collector,
) -> None:
    """Judge the numbers in a file by the last trained step of its rank, and by the planned step."""
    for name, number in stored.items():
        subject = about(file.rank, file=where, parameters=(name,), quantity=name, seen=number)
        if last is not None and number != (right := counted(name, step_of(last), every)):
            after = f"{'' if right == step_of(last) else f'after step {step_of(last)}, '}the last step that it trained"
            expected = f"{name} of rank {file.rank} is {right}, {after}"
            data = replace(subject, step=step_of(last), expected=right)
            collector.fail(expected, f"{name} {number} is stored", where, last.source, data=data)
        step = plan.checkpoint.step if plan.checkpoint is not None else None
        if step is not None and number != (planned := counted(name, step, every)):
            observation = f"rank {file.rank}'s {name} is {number}"
            data = replace(subject, step=step, expected=planned)
            line = line_of(plan, "checkpoint.step", "checkpoint")
            collector.fail(f"the checkpoint holds step {step}", observation, line, where, data=data)


def _judge_save_events(history: History, file: OwnedCheckpoint, step: int, collector: Collector, where: str) -> None:
    """Judge the step that the rank recorded for the save."""
    saves = history.select("checkpoint.end", attempt=TRAIN, rank=file.rank, kind="end-of-life")
    events = [save for save in saves if save.data.get("step") not in (None, step)]
    for save in events:
        observation = f"rank {file.rank} recorded a save of step {save.data['step']}"
        collector.fail(
            f"the save was of the stored step, {step}",
            observation,
            where,
            *places([save]),
            data=about(file.rank, step=step, file=where, quantity="step", expected=step, seen=save.data["step"]),
        )


def judge_alike(artifacts: Artifacts, states: dict[OwnedCheckpoint, SavedState], collector: Collector) -> None:
    """Judge that facts about the moment of the save are the same in every file."""
    for name in ("step_num", "global_step", "epoch_num", "batch_num"):
        values = {state.numbers.get(name) for state in states.values()}
        if len(values) > 1:
            numbers = text_list(f"rank {file.rank}: {state.numbers.get(name)}" for file, state in states.items())
            collector.fail(
                f"{name} is the same in every file",
                numbers,
                *paths_of(artifacts, list(states)),
                data=about(
                    (file.rank for file in states),
                    file=artifacts.relative(next(iter(states)).path),
                    parameters=(name,),
                    quantity=name,
                ),
            )


def judge_survivors(plan: Plan, history: History, collector: Collector) -> None:
    """Judge that no survivor has trained further than the saved step: the later step would be lost.

    This is judged only where the plan knows the step. A fault that may strike at any moment may split an all-reduce.
    """
    assert plan.checkpoint is not None
    hit = {rank for fault in plan.faults for rank in fault.ranks}
    for rank in sorted(set(range(plan.layout.ranks)) - hit):
        last = last_trained(history, rank)
        if last is not None and plan.checkpoint.step is not None and step_of(last) > plan.checkpoint.step:
            expected = f"step {plan.checkpoint.step} is the last one that any survivor trained"
            collector.fail(
                expected,
                f"rank {rank} trained step {step_of(last)}",
                last.source,
                data=about(
                    rank, step=step_of(last), quantity="step", expected=plan.checkpoint.step, seen=step_of(last)
                ),
            )
