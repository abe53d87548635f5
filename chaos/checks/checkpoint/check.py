"""Check ``checkpoint``: the end-of-life checkpoint is there, from the right ranks, and holds the right step.

Names are hints and are compared with the numbers inside. The values of the parameters are judged by
:mod:`chaos.checks.checkpoint.values`, for the same check.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.checks.checkpoint.newest_saved import judge_newest
from chaos.checks.checkpoint.overwritten import judge_overwritten
from chaos.checks.checkpoint.periodic_values import judge_periodic_values
from chaos.checks.checkpoint.places import paths_of
from chaos.checks.checkpoint.save_records import judge_records
from chaos.checks.checkpoint.savers import judge_absence, judge_groups
from chaos.checks.checkpoint.saving_goes_on import judge_saving_goes_on
from chaos.checks.checkpoint.stored_step import judge_alike, judge_step, judge_survivors
from chaos.checks.checkpoint.unfinished import judge_left, judge_unfinished
from chaos.checks.checkpoint.values import judge_values
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline
from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.checkpoints.saved import end_of_life
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, text_list
from chaos.evidence.finding import Finding
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan

NAME = "checkpoint"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge all end-of-life checkpoint files of the run."""
    collector = Collector(NAME)
    files = end_of_life(history, artifacts)
    judge_unfinished(history, artifacts, collector)
    judge_left(plan, history, artifacts, collector)
    judge_records(history, artifacts, collector)
    judge_periodic_values(plan, history, artifacts, Baseline(plan, history, artifacts), collector)
    judge_overwritten(history, artifacts, collector)
    judge_saving_goes_on(plan, history, artifacts.baseline, collector)
    judge_newest(plan, history, artifacts, collector)
    if plan.checkpoint is None:
        judge_absence(plan, history, artifacts, files, collector)
        return collector.findings()
    judge_groups(plan, history, artifacts, files, collector)
    _judge_temporary(history, artifacts, collector)
    states: dict[OwnedCheckpoint, SavedState] = {}
    for file in files:
        state = _load(artifacts, file, collector)
        if state is not None:
            states[file] = state
    if files:
        collector.settle("every file loads", f"{len(files)} of {len(files)} do", *paths_of(artifacts, files))
    collector.close()
    for file, state in states.items():
        judge_step(plan, history, artifacts, file, state, collector)
    judge_alike(artifacts, states, collector)
    judge_survivors(plan, history, collector)
    if states:
        steps = sorted({state.numbers.get("step_num", -1) for state in states.values()})
        observation = f"step {text_list(steps)} everywhere"
        collector.settle(
            "stored step, history, directory and names agree", observation, *paths_of(artifacts, list(states))
        )
        judge_values(plan, history, artifacts, states, collector)
    return collector.findings()


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
