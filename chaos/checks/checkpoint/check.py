"""Check ``checkpoint``: the end-of-life checkpoint is there, from the right ranks, and holds the right step.

Names are hints and are compared with the numbers inside. The values of the parameters are judged by
:mod:`chaos.checks.checkpoint.values`, for the same check.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import PurePosixPath

from chaos.base.rank_sets import spans
from chaos.checks.checkpoint.newest_saved import judge_newest
from chaos.checks.checkpoint.overwritten import judge_overwritten
from chaos.checks.checkpoint.periodic_values import judge_periodic_values
from chaos.checks.checkpoint.save_records import judge_records
from chaos.checks.checkpoint.saving_goes_on import judge_saving_goes_on
from chaos.checks.checkpoint.unfinished import judge_left, judge_unfinished
from chaos.checks.checkpoint.values import judge_values
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline
from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.checkpoints.periodic import outside_text
from chaos.evidence.checkpoints.saved import end_of_life, outside, step_in, unowned
from chaos.evidence.checkpoints.stored import COUNTER, STEP, counted
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, last_trained, places, ranks_text, step_of, text_list
from chaos.evidence.finding import Finding
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan

NAME = "checkpoint"

APPENDED = ("epoch_num", "step_num", "cur_rank", "batch_num")
"""The entries that MindSpore's own end-of-life save appends (2.7 to 2.10), behind the parameters."""


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge all end-of-life checkpoint files of the run."""
    collector = Collector(NAME)
    files = end_of_life(history, artifacts)
    judge_unfinished(history, artifacts, collector)
    judge_left(plan, history, artifacts, collector)
    judge_records(history, artifacts, collector)
    judge_periodic_values(plan, history, artifacts, Baseline(plan, history, artifacts), collector)
    judge_overwritten(history, artifacts, collector)
    judge_saving_goes_on(plan, history, collector)
    judge_newest(plan, history, artifacts, collector)
    if plan.checkpoint is None:
        _judge_absence(plan, history, artifacts, files, collector)
        return collector.findings()
    _judge_groups(plan, history, artifacts, files, collector)
    _judge_temporary(history, artifacts, collector)
    states: dict[OwnedCheckpoint, SavedState] = {}
    for file in files:
        state = _load(artifacts, file, collector)
        if state is not None:
            states[file] = state
    if files:
        collector.settle("every file loads", f"{len(files)} of {len(files)} do", *_paths(artifacts, files))
    collector.close()
    for file, state in states.items():
        _judge_step(plan, history, artifacts, file, state, collector)
    _judge_alike(artifacts, states, collector)
    _judge_survivors(plan, history, collector)
    if states:
        steps = sorted({state.numbers.get("step_num", -1) for state in states.values()})
        observation = f"step {text_list(steps)} everywhere"
        collector.settle(
            "stored step, history, directory and names agree", observation, *_paths(artifacts, list(states))
        )
        judge_values(plan, history, artifacts, states, collector)
    return collector.findings()


def _line(plan: Plan, key: str) -> str:
    line = plan.explanation.lines.get(key, plan.explanation.lines.get("checkpoint"))
    return f"scenario.yaml:{line}" if line else ""


def _paths(artifacts: Artifacts, files: list[OwnedCheckpoint]) -> tuple[str, ...]:
    return tuple(artifacts.relative(file.path) for file in files)


def _judge_absence(
    plan: Plan, history: History, artifacts: Artifacts, files: list[OwnedCheckpoint], collector: Collector
) -> None:
    expected = "no end-of-life checkpoint is finished"
    for file in files:
        observation = f"rank {file.rank} has one: {file.path.name}"
        collector.fail(
            expected,
            observation,
            _line(plan, "checkpoint"),
            artifacts.relative(file.path),
            data=about(file.rank, file=artifacts.relative(file.path)),
        )
    for reason, where in _unplaced(history, artifacts):
        collector.fail(expected, f"there is one, {reason}", _line(plan, "checkpoint"), where, data=about(file=where))
    if not artifacts.job_dir.is_dir():
        collector.unknown(expected, "the job's directory was not kept, so no check is possible", "job")
    collector.settle(expected, "there is none", _line(plan, "checkpoint"))


def _judge_groups(
    plan: Plan, history: History, artifacts: Artifacts, files: list[OwnedCheckpoint], collector: Collector
) -> None:
    assert plan.checkpoint is not None
    line = _line(plan, "checkpoint.ranks")
    by_saver: dict[int, list[OwnedCheckpoint]] = defaultdict(list)
    for file in files:
        savers = [saver for saver, ranks in plan.checkpoint.entitled.items() if file.rank in ranks]
        if not savers:
            observation = f"rank {file.rank} saved without being entitled to"
            collector.fail(
                f"only entitled ranks save: {_entitled(plan)}",
                observation,
                line,
                artifacts.relative(file.path),
                data=about(file.rank, file=artifacts.relative(file.path)),
            )
        for saver in savers:
            by_saver[saver].append(file)
    unplaced = _unplaced(history, artifacts)
    for reason, where in unplaced:
        collector.unknown("the owner of each end-of-life checkpoint is known", reason, where, data=about(file=where))
    for saver in plan.checkpoint.savers:
        group = _group(plan, saver)
        expected = f"one checkpoint of replica group {group}, from {_any_of(plan.checkpoint.entitled[saver])}"
        group_files = by_saver[saver]
        if not group_files and unplaced:
            observation = f"no checkpoint is known to be of replica group {group}, and of {unplaced[0][0]}"
            collector.unknown(expected, observation, line, "job", data=about(saver))
        elif not group_files:
            collector.fail(
                expected,
                f"no checkpoint of replica group {group}",
                line,
                "job",
                data=about(saver, step=plan.checkpoint.step),
            )
        elif len(group_files) > 1:
            collector.fail(
                expected,
                f"{len(group_files)} files",
                line,
                *_paths(artifacts, group_files),
                data=about(
                    (file.rank for file in group_files),
                    file=artifacts.relative(group_files[0].path),
                    expected=1,
                    seen=len(group_files),
                    quantity="files",
                ),
            )
    _judge_witnesses(plan, history, artifacts, files, collector, line)
    observation = f"{ranks_text(file.rank for file in files)} saved"
    collector.settle(
        "one checkpoint of every replica group, from an entitled rank", observation, line, *_paths(artifacts, files)
    )


def _unplaced(history: History, artifacts: Artifacts) -> list[tuple[str, str]]:
    """Return the end-of-life checkpoints that cannot be compared with the plan, each with the reason and the place.

    Their owner is not known, or they do not lie in the run's directory.
    """
    strays = unowned(history, artifacts, "end-of-life")
    unplaced = [(f"{artifacts.relative(file.path)}: {file.reason}", artifacts.relative(file.path)) for file in strays]
    return unplaced + [(outside_text(event), event.source) for event in outside(history, artifacts, "end-of-life")]


def _judge_witnesses(
    plan: Plan,
    history: History,
    artifacts: Artifacts,
    files: list[OwnedCheckpoint],
    collector: Collector,
    line: str,
) -> None:
    """Judge that the ranks' histories record the same saves as the files."""
    assert plan.checkpoint is not None
    saves = history.select("checkpoint.end", attempt=TRAIN, kind="end-of-life")
    handled = history.select("handler.enter", attempt=TRAIN, name="save_ckpt")
    entitled = {rank for ranks in plan.checkpoint.entitled.values() for rank in ranks}
    for save in saves + handled:
        if save.rank not in entitled:
            expected = f"only entitled ranks save: {_entitled(plan)}"
            collector.fail(
                expected, f"rank {save.rank} saved without being entitled to", line, save.source, data=about(save.rank)
            )
    witnesses = {event.rank for event in saves + handled}
    for file in files:
        if file.rank not in witnesses:
            observation = f"there is a file of rank {file.rank}, but the history of that rank has no save"
            collector.unknown(
                "each file was saved by its rank",
                observation,
                artifacts.relative(file.path),
                data=about(file.rank, file=artifacts.relative(file.path)),
            )


def _entitled(plan: Plan) -> str:
    assert plan.checkpoint is not None
    return text_list((_any_of(ranks) for ranks in plan.checkpoint.entitled.values()), 8)


def _any_of(ranks: tuple[int, ...]) -> str:
    return f"rank {' or '.join(map(str, ranks))}" if len(ranks) <= 8 else f"one of {ranks_text(ranks)}"


def _group(plan: Plan, rank: int) -> str:
    group = next((group for group in plan.layout.replica_groups if rank in group), (rank,))
    return f"[{', '.join(map(str, group)) if len(group) <= 8 else spans(group)}]"


def _judge_temporary(history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge temporary directories.

    MindFormers' names are the same for both kinds: such a file counts when a rank began it as an end-of-life one.
    """
    expected = "temporary directories are renamed when all have saved"
    saves = history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life")
    paths = [PurePosixPath(str(event.data.get("path"))) for event in saves]
    begun = {artifacts.locate(str(path.parent / f"{path.stem}.tmp")) for path in paths}
    left = [
        file.path
        for file in artifacts.checkpoints
        if file.temporary and (file.kind == "end-of-life" or (file.kind == "either" and file.path in begun))
    ]
    for path in [*artifacts.temporary_directories, *left]:
        collector.fail(
            expected, f"{path.name} is left", artifacts.relative(path), data=about(file=artifacts.relative(path))
        )
    collector.settle(expected, "none is left")


def _load(artifacts: Artifacts, file: OwnedCheckpoint, collector: Collector) -> SavedState | None:
    where = artifacts.relative(file.path)
    try:
        return artifacts.read_checkpoint(file.path)
    except CheckpointNotSupported as error:
        collector.unknown(
            "every file loads",
            f"rank {file.rank}'s file cannot be judged: {error.problem}",
            where,
            data=about(file.rank, file=where),
        )
    except CheckpointError as error:
        place = f" at byte {error.offset}" if error.offset is not None else ""
        collector.fail(
            "every file loads",
            f"rank {file.rank}'s file is damaged{place}: {error.problem}",
            where,
            data=about(file.rank, file=where),
        )
    return None


def _judge_step(
    plan: Plan, history: History, artifacts: Artifacts, file: OwnedCheckpoint, state: SavedState, collector: Collector
) -> None:
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
    step = step_in(history, artifacts, file, state)
    if step is None:
        observation = f"rank {file.rank}'s file holds global_step {stored[COUNTER]}, with {every} steps for each update"
        collector.unknown(
            "the step is stored inside",
            f"{observation}, and which of these steps it holds is unknown",
            where,
            data=about(file.rank, file=where),
        )
        return
    _judge_names(plan, file, state, step, collector, where, every)
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
            collector.fail(
                f"the checkpoint holds step {step}", observation, _line(plan, "checkpoint.step"), where, data=data
            )


def _judge_survivors(plan: Plan, history: History, collector: Collector) -> None:
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


def _judge_alike(artifacts: Artifacts, states: dict[OwnedCheckpoint, SavedState], collector: Collector) -> None:
    """Judge that facts about the moment of the save are the same in every file."""
    for name in ("step_num", "global_step", "epoch_num", "batch_num"):
        values = {state.numbers.get(name) for state in states.values()}
        if len(values) > 1:
            numbers = text_list(f"rank {file.rank}: {state.numbers.get(name)}" for file, state in states.items())
            collector.fail(
                f"{name} is the same in every file",
                numbers,
                *_paths(artifacts, list(states)),
                data=about(
                    (file.rank for file in states),
                    file=artifacts.relative(next(iter(states)).path),
                    parameters=(name,),
                    quantity=name,
                ),
            )


def _judge_names(
    plan: Plan, file: OwnedCheckpoint, state: SavedState, step: int, collector: Collector, where: str, every: int
) -> None:
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
            _line(plan, "checkpoint"),
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
