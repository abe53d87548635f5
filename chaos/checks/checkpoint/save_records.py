"""Part of check ``checkpoint``: the records that MindFormers and Megatron keep of their saves agree with the files.

A resume goes by these records: ``meta.json`` in MindFormers' legacy layout, ``latest_checkpointed_iteration.txt``,
``common.json`` and ``metadata.json`` in the new one. Megatron has a ``latest_checkpointed_iteration.txt``, too
(:mod:`chaos.observe.checkpoints.tracked_layouts`). Says nothing without such records.
"""

from __future__ import annotations

import os
from pathlib import Path

from chaos.checks.checkpoint.named_newest import NewestSave, newest_saves
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.layout import DIGESTED
from chaos.observe.checkpoints.mindformers_layout import IterationDirectory, find_iterations, find_trackers
from chaos.observe.checkpoints.mindformers_records import (
    META,
    TRACKER,
    read_common,
    read_meta,
    read_metadata,
)
from chaos.observe.checkpoints.mindformers_state import is_kept
from chaos.observe.checkpoints.tracked_layouts import MODEL_PARALLEL, TrackedLayout, layout_beside, read_tracked

EXPECTED = "the records of the saves agree with the files"


def judge_records(history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the records that the job has left, of both layouts."""
    metas = sorted(_metas(artifacts))
    iterations = artifacts.search(find_iterations)
    trackers = [path for path in artifacts.search(find_trackers) if not path.is_symlink()]
    broken_off = _broken_off(history)
    newest = newest_saves(history, artifacts)
    for path in metas:
        _judge_meta(path, newest.get(path.parent), artifacts, collector)
    tracked = {path.parent: _judge_tracker(path, artifacts, collector) for path in trackers}
    for root, step in tracked.items():
        newer = newest.get(root)
        if step is not None and newer is not None and newer.iteration not in (None, step):
            newer.judge(f"{artifacts.relative(root / TRACKER)} names iteration {step}", collector)
    for iteration in iterations:
        # The tracker is written last: a save that it does not name yet may have been broken off.
        last = tracked.get(iteration.path.parent)
        if not broken_off or (last is not None and iteration.step <= last):
            _judge_iteration(iteration, artifacts, collector)
    if metas or iterations or trackers:
        observation = f"{len(metas)} {META}, {len(trackers)} trackers, {len(iterations)} iterations"
        collector.settle(EXPECTED, f"{observation} agree with the files")


def _metas(artifacts: Artifacts) -> set[Path]:
    """Return the files ``meta.json`` in the directories of ranks that hold files of MindFormers' names."""
    directories = {
        file.path.parent for file in artifacts.checkpoints if file.kind == "either" and file.in_rank_directory
    }
    return {path for directory in directories if os.path.lexists(path := directory / META)}


def _broken_off(history: History) -> bool:
    """Return whether a rank did not come to its own end: a save may have been broken off."""
    return any(event.data.get("code") != 0 for event in history.select("rank.exit"))


def _judge_meta(path: Path, newest: NewestSave | None, artifacts: Artifacts, collector: Collector) -> None:
    where = artifacts.relative(path)
    try:
        last = read_meta(path)
    except CheckpointError as error:
        collector.fail(EXPECTED, f"{where} cannot be read: {error.problem}", where, data=about(file=where))
        return
    named = path.with_name(last.file)
    kept = next(
        (candidate for candidate in (named, named.with_name(named.name + DIGESTED)) if candidate.is_file()), None
    )
    if kept is None:
        unfinished = any(file.suffix == ".tmp" for file in path.parent.iterdir())
        say = collector.unknown if unfinished else collector.fail
        say(EXPECTED, f"{where} names {last.file}, which is not there", where, data=about(file=where))
        return
    if Path(last.file).stem.rpartition("-")[2] != f"{last.epoch}_{last.step_in_epoch}":
        observation = f"{where} says epoch {last.epoch}, step {last.step_in_epoch} of {last.file}"
        collector.fail(EXPECTED, observation, where, data=about(file=where, quantity="file", seen=last.file))
    try:
        stored = artifacts.read_checkpoint(kept).numbers.get("epoch_num")
    except CheckpointNotSupported as error:
        collector.unknown(EXPECTED, f"{last.file} cannot be judged: {error.problem}", where, data=about(file=where))
        return
    except CheckpointError as error:
        collector.fail(
            EXPECTED, f"{where} names {last.file}, which is damaged: {error.problem}", where, data=about(file=where)
        )
        return
    if stored is not None and stored != last.epoch:
        collector.fail(
            EXPECTED,
            f"{where} says epoch {last.epoch} of {last.file}, which holds epoch {stored}",
            where,
            data=about(file=where, quantity="epoch", expected=stored, seen=last.epoch),
        )
    if newest is not None and newest.iteration is None and newest.file != Path(last.file).stem:
        newest.judge(f"{where} names {last.file}", collector)


def _judge_tracker(path: Path, artifacts: Artifacts, collector: Collector) -> int | None:
    """Judge a tracker by the layout of the saves beside it; return the iteration that it names."""
    where = artifacts.relative(path)
    layout = layout_beside(path)
    if layout is None:
        observation = f"no save of one known layout lies beside {where}, so nobody knows which program wrote it"
        collector.unknown(EXPECTED, observation, where, data=about(file=where))
        return None
    try:
        tracked = read_tracked(path, layout)
    except CheckpointError as error:
        collector.fail(EXPECTED, f"{where} cannot be read: {error.problem}", where, data=about(file=where))
        return None
    directory = path.with_name(layout.name_of(tracked))
    if not directory.is_dir():
        named = tracked if isinstance(tracked, str) else f"iteration {tracked}"
        collector.fail(
            EXPECTED, f"{where} names {named}, but there is no {directory.name}", where, data=about(file=where)
        )
    else:
        _judge_model_parallel(directory, layout, artifacts, collector)
    return tracked if isinstance(tracked, int) else None


def _judge_model_parallel(directory: Path, layout: TrackedLayout, artifacts: Artifacts, collector: Collector) -> None:
    """Judge that the newest save of Megatron has a directory for each part of the model that another save has."""
    saves = [path for path in directory.parent.iterdir() if layout.has(path.name) and path.is_dir()]
    parts = {save: {path.name for path in save.iterdir() if MODEL_PARALLEL.fullmatch(path.name)} for save in saves}
    if missing := sorted(set().union(*parts.values()) - parts.get(directory, set())):
        where = artifacts.relative(directory)
        collector.fail(EXPECTED, f"{where} has no {missing[0]}, as another save has", where, data=about(file=where))


def _judge_iteration(iteration: IterationDirectory, artifacts: Artifacts, collector: Collector) -> None:
    where = artifacts.relative(iteration.path)
    if iteration.common is None:
        collector.fail(
            EXPECTED, f"{where} has no common.json, which says what step it holds", where, data=about(file=where)
        )
        return
    try:
        step = read_common(iteration.common).step
    except CheckpointError as error:
        collector.fail(
            EXPECTED, f"{where}/{iteration.common.name} cannot be read: {error.problem}", where, data=about(file=where)
        )
        return
    if step != iteration.step:
        collector.fail(
            EXPECTED,
            f"{where} says step {iteration.step}, its common.json {step}",
            where,
            data=about(step=step, file=where, quantity="step", expected=iteration.step, seen=step),
        )
    if iteration.metadata is not None:
        try:
            listed = read_metadata(iteration.metadata).files
        except CheckpointError as error:
            collector.fail(
                EXPECTED,
                f"{where}/{iteration.metadata.name} cannot be read: {error.problem}",
                where,
                data=about(file=where),
            )
            return
        gone = sorted(name for name in listed if not is_kept(iteration.path, name))
        if gone:
            collector.fail(
                EXPECTED, f"{where}: metadata.json names {gone[0]}, which is not there", where, data=about(file=where)
            )
