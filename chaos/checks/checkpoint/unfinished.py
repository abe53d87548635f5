"""Part of check ``checkpoint``: the leftovers of a broken-off save, and that no rank took them for a checkpoint."""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, text_list
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.recovery.mechanism import SAVING

EXPECTED = "the files of an interrupted save are not loaded as a checkpoint"
LEFT = "an interrupted save leaves its directory under its temporary name"

_BROKEN_AT = ("checkpoint.write", "checkpoint.end")
"""Phases of a save in which its directory exists."""


def judge_unfinished(history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Name the directories and files that were never finished, and judge that no rank has loaded any of them.

    Says nothing where all saves were finished.
    """
    left = [*artifacts.temporary_directories, *(file.path for file in artifacts.checkpoints if file.temporary)]
    places = [artifacts.relative(path) for path in left]
    for load in history.select("load.begin"):
        path = PurePosixPath(str(load.data.get("path")))
        if any(part.endswith("_tmp") for part in path.parts) or path.suffix == ".tmp":
            observation = f"rank {load.rank} loads {artifacts.recorded(str(path))}"
            collector.fail(
                EXPECTED, observation, load.source, *places, data=about(load.rank, file=artifacts.recorded(str(path)))
            )
    if places:
        collector.settle(EXPECTED, f"unfinished and loaded by no rank: {', '.join(places)}", *places)


def judge_left(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge that every end-of-life save that began and that the plan broke off has left its directory.

    Says nothing where the plan has no such save, or where the storage was gone before anything could be made in it.
    MindFormers has no such directories.
    """
    broken = [fault for fault in plan.faults if _breaks_save(fault)]
    if not broken or not any(
        recovery.mechanism in SAVING and not recovery.succeeds for recovery in plan.response.recoveries
    ):
        return
    line = line_of(plan, "checkpoint")
    begun = history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life")
    if not begun and not _refused_before(history):
        collector.unknown(LEFT, "no rank has recorded that it began one", line)
    there = {path.name for path in artifacts.temporary_directories}
    saves = {name: event for event in reversed(begun) for name in _temporary(event)}
    for name, event in saves.items():
        if name not in there and artifacts.job_dir.is_dir():
            collector.fail(
                LEFT,
                f"rank {event.rank} began to save in {name}, which is not there",
                line,
                event.source,
                data=about(event.rank, file=name),
            )
    if not saves:
        collector.close()
    else:
        collector.settle(LEFT, text_list(saves), line, *(event.source for event in saves.values()))


def _breaks_save(fault: PlannedFault) -> bool:
    """Return whether a fault breaks a save off once its directory exists."""
    parts = [fault.trigger, *fault.trigger.get("all", ())]
    inside = {part["handler"] for part in parts if "handler" in part}
    phases = {part["phase"] for part in parts if "phase" in part}
    how = fault.effect.spoils_saves
    return (
        (how is not None and how.leaves_names)
        or "rename" in inside
        or ("save_ckpt" in inside and bool(phases.intersection(_BROKEN_AT)))
    )


def _refused_before(history: History) -> bool:
    """Return whether the storage has refused the directory itself: then the error names a path."""
    left = history.select("handler.exit", attempt=TRAIN, name="save_ckpt", ok=False)
    return any("_tmp" in str(event.data.get("error")) for event in left)


def _temporary(begin: Event) -> list[str]:
    """Return the temporary directory's name in the path that a save began to write."""
    return [part for part in PurePosixPath(str(begin.data.get("path"))).parts if part.endswith("_tmp")]
