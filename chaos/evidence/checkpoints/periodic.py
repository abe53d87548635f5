"""The periodic checkpoints of a run: their files, and the step of them from which the job was started again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.at_resume import step_at_resume
from chaos.evidence.checkpoints.counted_loads import counted_loads, loads_listed, of_several_steps
from chaos.evidence.checkpoints.damage import loads_made
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, located, owners_of
from chaos.evidence.checkpoints.saved import SavedKind, end_of_life, outside, saved_step, unowned
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, by_rank, exit_status, is_of_this_run, places, signal_number, step_of, text_list
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.layout import DIGESTED
from chaos.plan.model import Plan

NOT_THERE = "which is outside the run's directory, so it cannot be checked"

REMOVED = "it is not there any more: the job has removed it since, and its content was not recorded before"

NOT_SAVED = "no rank has recorded that it saved it, and its name is not PREFIX-EPOCH_STEP.ckpt or .safetensors"
"""The reason why a loaded file is no checkpoint of the run (chaos.evidence.checkpoints.owner)."""

UNCLEAR = "the state before the first step does not tell which load counts"

REFUSAL = "has a file for every rank"
"""The words of the rehearsal's job when it finds no step to go on from."""


def periodic(history: History, artifacts: Artifacts) -> list[OwnedCheckpoint]:
    """Return the finished periodic files that the job left and whose owner is known, by path.

    MindFormers gives end-of-life checkpoints the name of an ordinary one: a file that no rank recorded as end-of-life
    is periodic.
    """
    others = set(end_of_life(history, artifacts))
    return [file for file in owners_of(history, artifacts).owned if file not in others]


def loadable(history: History, artifacts: Artifacts) -> list[OwnedCheckpoint]:
    """Return the periodic files from which the job may have been started again: also those that were removed since."""
    return [*periodic(history, artifacts), *owners_of(history, artifacts).removed]


def every_file(history: History, artifacts: Artifacts) -> list[OwnedCheckpoint]:
    """Return all files whose owner is known, also those that were removed since the job was started again."""
    owners = owners_of(history, artifacts)
    return [*owners.owned, *owners.removed]


def is_saved(history: History, artifacts: Artifacts, kind: SavedKind) -> bool:
    """Return whether the job has saved a checkpoint of this kind to its end, under any name and in any place."""
    files = end_of_life(history, artifacts) if kind == "end-of-life" else periodic(history, artifacts)
    return bool(files or unowned(history, artifacts, kind) or outside(history, artifacts, kind))


def by_path(files: Iterable[OwnedCheckpoint]) -> dict[Path, OwnedCheckpoint]:
    """Return the files by the paths that are loaded for them.

    In MindFormers' new layout the optimizer's state, a file beside the model's, has a path of its own.
    """
    listed = list(files)
    paths: dict[Path, OwnedCheckpoint] = {}
    for file in listed:
        if (beside := file.optimizer) is not None:
            paths[beside] = paths[beside.with_name(beside.name + DIGESTED)] = file
    return {**paths, **{file.path: file for file in listed}}


def resumed_from(plan: Plan, history: History, artifacts: Artifacts) -> int | None:
    """Return the step after which the job started again went on, by the numbers in the files. None when they disagree.

    It is the step of the end-of-life checkpoint or, where the plan restores periodic checkpoints, of the loaded ones;
    where nothing was loaded, the plan's step. A file within an accumulation of gradients also serves for the last
    update: it is the step where all ranks went on behind it.
    """
    step = _held(plan, history, artifacts)
    if step is None or (update := step - step % artifacts.steps_per_update) == step:
        return step
    begins = by_rank(history, "step.begin", RESUME).values()
    return update if {step_of(steps_begun[0]) for steps_begun in begins} == {update + 1} else step


def _held(plan: Plan, history: History, artifacts: Artifacts) -> int | None:
    """Return the one step that is stored in the files from which the job was started again."""
    if plan.resume.restore is None:
        return saved_step(history, artifacts)
    files = by_path(loadable(history, artifacts))
    steps: set[int | None] = set()
    for load in counted(plan, history, artifacts, files):
        path = located(history, artifacts, str(load.data.get("path")))
        try:
            steps.add(step_at_resume(history, artifacts, files[path]) if path in files else None)
        except CheckpointError:
            return None
    if not steps:
        return plan.resume.restore.step
    return steps.pop() if len(steps) == 1 else None


def counted(
    plan: Plan, history: History, artifacts: Artifacts, files: dict[Path, OwnedCheckpoint], rank: int | None = None
) -> list[Event]:
    """Return the loads after the resume that count, of one rank or of all; ``files`` are those of the plan's kind."""
    everything = by_path(every_file(history, artifacts))
    return [
        load
        for number in (range(plan.layout.ranks) if rank is None else (rank,))
        for load in counted_loads(history, artifacts, number, everything, files)
    ]


def why_unknown(plan: Plan, history: History, artifacts: Artifacts) -> tuple[str, tuple[str, ...]]:
    """Return why the step that the job went on from is not known, and the place: the file that cannot be judged."""
    kind: SavedKind = "end-of-life" if plan.resume.restore is None else "periodic"
    for file in unowned(history, artifacts, kind) if plan.resume.restore is None else ():
        return f"{artifacts.relative(file.path)}: {file.reason}", (artifacts.relative(file.path),)
    for save in outside(history, artifacts, kind) if plan.resume.restore is None else ():
        return outside_text(save), (save.source,)
    if plan.resume.restore is None:
        return "the end-of-life checkpoints do not hold one and the same step", ()
    files = by_path(loadable(history, artifacts))
    loads = counted(plan, history, artifacts, files)
    everything = by_path(every_file(history, artifacts))
    if unclear := of_several_steps(history, artifacts, loads, everything):
        return f"{UNCLEAR}: {loads_listed(history, artifacts, unclear, everything)}", places(unclear)[:5]
    others = {file.path: file.reason for file in owners_of(history, artifacts).unowned}
    others |= {checkpoint.path: "it is an end-of-life checkpoint" for checkpoint in end_of_life(history, artifacts)}
    for load in loads:
        recorded = str(load.data.get("path"))
        path = located(history, artifacts, recorded)
        observation = f"rank {load.rank} loaded {recorded}"
        if path is None or path not in files:
            gone = REMOVED if is_of_this_run(history, recorded) else NOT_THERE
            why = gone if path is None else others.get(path, NOT_SAVED)
            return f"{observation}: {why}", (load.source,)
        try:
            if step_at_resume(history, artifacts, files[path]) is None:
                return f"{observation}, which holds neither step_num nor global_step", (
                    load.source,
                    artifacts.relative(path),
                )
        except CheckpointError as error:
            return f"{observation}, which cannot be read: {error.problem}", (load.source, artifacts.relative(path))
    listed = loads_listed(history, artifacts, loads, everything)
    return f"the periodic checkpoints that were loaded do not hold one and the same step: {listed}", ()


def outside_text(save: Event) -> str:
    """Return the problem of a file that cannot be read."""
    return f"rank {save.rank} has saved {save.data.get('path')}, {NOT_THERE}"


def judge_hopeless(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the files where the plan says that the job cannot be resumed.

    No step has a file to go on from in every replica group or, where each rank goes on only from its own, for every
    rank.
    """
    if plan.resume.restore is not None and plan.resume.restore.unrecorded:
        return  # the rest of the record is the evidence of the fault
    restores_own = plan.resume.restore is not None and plan.resume.restore.own
    sharing = tuple((rank,) for rank in range(plan.layout.ranks)) if restores_own else plan.layout.replica_groups
    unit = "rank" if restores_own else "group"
    expected = f"no step has a file left of every {'rank' if restores_own else 'replica group'}"
    groups: dict[int, set[int]] = defaultdict(set)
    group_of = {rank: number for number, group in enumerate(sharing) for rank in group}
    files = periodic(history, artifacts)
    for stray in unowned(history, artifacts, "periodic"):
        collector.unknown(
            expected,
            f"{artifacts.relative(stray.path)}: {stray.reason}",
            artifacts.relative(stray.path),
            data=about(file=artifacts.relative(stray.path)),
        )
    for save in outside(history, artifacts, "periodic")[:1]:
        collector.unknown(expected, outside_text(save), save.source, data=about(save.rank))
    # A damaged file is again as it was saved: it was put back when the run was torn down.
    damaged = plan.resume.restore.damaged if plan.resume.restore is not None else {}
    for file in files:
        try:
            step = step_at_resume(history, artifacts, file)
        except CheckpointError as error:
            observation = f"rank {file.rank}'s file cannot be read: {error.problem}"
            collector.unknown(
                expected,
                observation,
                artifacts.relative(file.path),
                data=about(file.rank, file=artifacts.relative(file.path)),
            )
            continue
        if step is not None and file.rank in group_of and damaged.get(file.rank) != step:
            groups[step].add(group_of[file.rank])
    for step, present in sorted(groups.items()):
        if len(present) == len(sharing):
            where = [artifacts.relative(file.path) for file in files]
            collector.fail(
                expected, f"step {step} has a file of every {unit}", *where[:5], data=about(step=step, file=where[0])
            )
    if not groups and not (files and damaged):
        collector.unknown(expected, "no periodic checkpoint of any rank is there", "job")
    kept = text_list(f"step {step}: {len(present)}" for step, present in sorted(groups.items()))
    kept = kept or "no step that was not damaged"
    collector.settle(expected, f"of {len(sharing)} {unit}s, files are left of {kept}")


def judge_refusal(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge that the job started again says so and ends; above all it does not begin from the start without a word.

    Every rank ends: with an error of its own, or by a signal once the first rank has ended.
    """
    expected = "the restarted job finds no checkpoint to resume from, reports it and ends"
    # An unfinished load of a damaged file does not count.
    for event in (*loads_made(history), *history.select("step.begin", attempt=RESUME)):
        collector.fail(expected, f"rank {event.rank} has recorded {event.event}", event.source, data=about(event.rank))
    refused = []
    for rank in range(plan.layout.ranks):
        exits = history.select("rank.exit", attempt=RESUME, rank=rank)
        ended = {event.pid for event in exits}
        missed = [event for event in history.select("rank.found", attempt=RESUME, rank=rank) if event.pid not in ended]
        if history.first("agent.start", attempt=RESUME, rank=rank) is None:
            collector.unknown(expected, f"no history of rank {rank} shows whether it trained", data=about(rank))
        if not exits or missed:
            collector.unknown(
                expected, f"no exit status of rank {rank} was recorded", *places(missed), data=about(rank)
            )
        for event in exits:
            if signal_number(event.data.get("signal")) is not None:
                continue
            if event.data.get("code") == 0:
                collector.fail(
                    expected,
                    f"rank {rank} ended as if it had trained: {exit_status(event)}",
                    event.source,
                    data=about(rank),
                )
            elif event.data.get("code") is None:
                collector.unknown(
                    expected, f"rank {rank} has ended, and its exit status is unknown", event.source, data=about(rank)
                )
            else:
                refused.append(event)
    if not refused:
        collector.unknown(expected, "no rank of attempt resume has ended with an error of its own")
    for event in refused:
        if not _says_why(artifacts, event.rank):
            collector.unknown(
                expected,
                f"the log of rank {event.rank} does not say why it ended",
                event.source,
                data=about(event.rank),
            )
    collector.settle(expected, f"{len(refused)} ranks did", *(event.source for event in refused))


def _says_why(artifacts: Artifacts, rank: int | None) -> bool:
    """Return whether a rank's log says that a checkpoint is missing or damaged.

    The words are the rehearsal's, or the known ones of MindSpore and MindFormers.
    """
    if artifacts.log_contains(RESUME, REFUSAL, rank):
        return True
    events = [] if rank is None else artifacts.worker_events(RESUME, rank)
    return any(event.kind in ("checkpoint.missing", "checkpoint.damaged") for event in events)
