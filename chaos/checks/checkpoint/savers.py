"""Part of check ``checkpoint``: the entitled ranks have saved, one file for each replica group; or none was to."""

from __future__ import annotations

from collections import defaultdict

from chaos.base.rank_sets import spans
from chaos.checks.checkpoint.places import paths_of
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.checkpoints.periodic import outside_text
from chaos.evidence.checkpoints.saved import outside, unowned
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, ranks_text, text_list
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan


def judge_absence(
    plan: Plan, history: History, artifacts: Artifacts, files: list[OwnedCheckpoint], collector: Collector
) -> None:
    """Judge a run that must leave no end-of-life checkpoint."""
    expected = "no end-of-life checkpoint is finished"
    for file in files:
        observation = f"rank {file.rank} has one: {file.path.name}"
        collector.fail(
            expected,
            observation,
            line_of(plan, "checkpoint"),
            artifacts.relative(file.path),
            data=about(file.rank, file=artifacts.relative(file.path)),
        )
    for reason, where in _unplaced(history, artifacts):
        collector.fail(expected, f"there is one, {reason}", line_of(plan, "checkpoint"), where, data=about(file=where))
    if not artifacts.job_dir.is_dir():
        collector.unknown(expected, "the job's directory was not kept, so no check is possible", "job")
    collector.settle(expected, "there is none", line_of(plan, "checkpoint"))


def judge_groups(
    plan: Plan, history: History, artifacts: Artifacts, files: list[OwnedCheckpoint], collector: Collector
) -> None:
    """Judge that there is one file of each replica group, from an entitled rank."""
    assert plan.checkpoint is not None
    line = line_of(plan, "checkpoint.ranks", "checkpoint")
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
                *paths_of(artifacts, group_files),
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
        "one checkpoint of every replica group, from an entitled rank", observation, line, *paths_of(artifacts, files)
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
    by_its_rank = "each file was saved by its rank"
    for save in saves + handled:
        if save.rank is None:
            collector.unknown(by_its_rank, "a save is recorded without its rank", line, save.source)
        elif save.rank not in entitled:
            expected = f"only entitled ranks save: {_entitled(plan)}"
            collector.fail(
                expected, f"rank {save.rank} saved without being entitled to", line, save.source, data=about(save.rank)
            )
    witnesses = {event.rank for event in saves + handled}
    for file in files:
        if file.rank not in witnesses:
            observation = f"there is a file of rank {file.rank}, but the history of that rank has no save"
            collector.unknown(
                by_its_rank,
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
