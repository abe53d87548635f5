"""Part of check ``checkpoint``: the names of a file and its directory agree with the numbers inside."""

from __future__ import annotations

from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.collect import Collector
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan


def judge_names(
    plan: Plan, file: OwnedCheckpoint, state: SavedState, step: int, collector: Collector, where: str, every: int
) -> None:
    """Judge step, rank and epoch in the names of a file and its directory by the numbers inside and by the plan."""
    assert plan.checkpoint is not None
    update = step - step % every
    if file.directory_step is not None and file.directory_step != update:
        # The directory's name has the SDK's number, and the SDK counts the steps that have made an update.
        expected = f"the directory's step is the stored one, {step}"
        if update != step:
            expected = f"the directory's step is that of the last update, {update}"
        collector.fail(
            expected,
            f"it is {file.directory_step}",
            where,
            data=about(file.rank, step=step, file=where, quantity="step", expected=update, seen=file.directory_step),
        )
    if file.name_rank is not None and file.name_rank != file.rank:
        collector.fail(
            f"the name is rank {file.rank}'s, as the directory",
            f"it is rank {file.name_rank}'s",
            where,
            data=about(file.rank, file=where, quantity="rank", expected=file.rank, seen=file.name_rank),
        )
    inside = state.numbers.get("cur_rank")
    if inside is not None and inside != file.rank:
        collector.fail(
            f"the content is rank {file.rank}'s",
            f"cur_rank {inside} is stored",
            where,
            data=about(file.rank, file=where, quantity="rank", expected=file.rank, seen=inside),
        )
    if ITERATION.fullmatch(file.path.parent.name) is None:
        _judge_epoch_in_name(plan, file, state, step, collector, where)
    elif file.step != step:
        collector.fail(
            f"the directory's iteration is the stored step, {step}",
            f"it is {file.step}",
            where,
            data=about(file.rank, step=step, file=where, quantity="step", expected=step, seen=file.step),
        )
    planned = plan.checkpoint.files.get(file.rank)
    if (
        planned is not None
        and plan.checkpoint.step == step
        and not f"/{_of_today(file.saved_as.as_posix())}".endswith(f"/{planned}")
    ):
        collector.fail(
            f"the file is {planned}",
            f"it is {where}",
            line_of(plan, "checkpoint"),
            where,
            data=about(file.rank, step=step, file=where, quantity="file", expected=planned, seen=where),
        )


def _judge_epoch_in_name(
    plan: Plan, file: OwnedCheckpoint, state: SavedState, step: int, collector: Collector, where: str
) -> None:
    batches = {state.numbers.get("batch_num", plan.training.steps_per_epoch)}
    # At sink size 1 some versions count every step as an epoch of one batch: 5_1 is step 5.
    if file.epoch is not None and file.step_in_epoch is not None:
        named = {(file.epoch - 1) * size + file.step_in_epoch for size in batches | {1} if file.step_in_epoch <= size}
        if step not in named:
            name_part = f"{file.epoch}_{file.step_in_epoch}"
            expected = f"the name's epoch and step are those of step {step} ({batches.pop()} steps an epoch)"
            collector.fail(
                expected,
                f"rank {file.rank}'s file is named {name_part}",
                where,
                data=about(file.rank, step=step, file=where, seen=name_part),
            )
    epoch = state.numbers.get("epoch_num")
    if file.epoch is not None and epoch not in (None, file.epoch):
        collector.fail(
            f"the name's epoch is the stored one, {epoch}",
            f"it is {file.epoch}",
            where,
            data=about(file.rank, step=step, file=where, quantity="epoch", expected=epoch, seen=file.epoch),
        )


def _of_today(path: str) -> str:
    """Return the path with the directory's present name.

    MindSpore 2.7 writes ``tft_saved_checkpoints-…``, 2.8 ``ttp_…``.
    """
    return path.replace("/tft_saved_checkpoints-step_", "/ttp_saved_checkpoints-step_")
