"""Part of check ``checkpoint``: the last save of each rank is there, since the next fault would need it.

Older checkpoints may be gone, since jobs keep a few only. A file that the job has renamed is known by its step.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.checks.history.torn_tails import GONE
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import is_background, written
from chaos.evidence.checkpoints.owner import kept_of
from chaos.evidence.checkpoints.periodic import periodic
from chaos.evidence.checkpoints.saved import stored_step
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.registered import is_part
from chaos.plan.model import Plan

EXPECTED = "the last checkpoint of each rank is there"


def judge_newest(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the last periodic save of each rank. Says nothing where no rank has saved, or all saves are elsewhere."""
    newest: dict[int, Event] = {}
    for event in history.select("checkpoint.end", kind="periodic"):
        # A part of a directory that is one checkpoint ends before the whole does.
        part = is_part(PurePosixPath(str(event.data.get("path"))).name)
        copied = "copy_of" in event.data  # a copy of an older save may be the last to be made
        if event.rank is not None and not part and not copied and _is_written(history, event):
            newest[event.rank] = event
    lost = {rank: save for rank, save in newest.items() if kept_of(save, artifacts) is None}
    if newest and len(lost) == len(newest) and not periodic(history, artifacts):
        collector.unknown(
            EXPECTED, "no file of any rank was kept", *(event.source for event in list(lost.values())[:3])
        )
    else:
        for rank, save in lost.items():
            if not (_is_taken(plan, history, save) or _is_held(history, artifacts, save)):
                _judge_lost(plan, history, artifacts, rank, save, collector)
    if newest:
        collector.settle(EXPECTED, f"the last checkpoints of {len(newest)} ranks are there")


def _judge_lost(
    plan: Plan, history: History, artifacts: Artifacts, rank: int, save: Event, collector: Collector
) -> None:
    file = artifacts.recorded(str(save.data.get("path")))
    observation = f"rank {rank} has saved {file} after step {save.data.get('step')}, which is not there"
    if any(fault.effect.spoils_saves for fault in plan.faults):
        collector.unknown(
            EXPECTED,
            f"{observation}; a fault has hit the storage",
            save.source,
            data=about(rank, step=save.data.get("step"), file=file),
        )
    elif any(history.first(event) is not None for event in GONE):
        collector.unknown(
            EXPECTED,
            f"{observation}; a host has gone",
            save.source,
            data=about(rank, step=save.data.get("step"), file=file),
        )
    else:
        collector.fail(EXPECTED, observation, save.source, data=about(rank, step=save.data.get("step"), file=file))


def _is_written(history: History, save: Event) -> bool:
    if not is_background(save):
        return True
    end = written(history, save)
    return end is not None and end.data.get("ok") is True


def _is_taken(plan: Plan, history: History, save: Event) -> bool:
    """Return whether a planned fault has touched the rank's save."""
    if plan.resume.restore is not None and save.attempt == TRAIN and save.rank in plan.resume.restore.lost:
        return True
    hit = [fault for fault in plan.faults if fault.effect.takes_saved and save.rank in fault.ranks]
    return any(event.mono > save.mono for fault in hit for event in history.select("fault.landed", fault=fault.id))


def _is_held(history: History, artifacts: Artifacts, save: Event) -> bool:
    """Return whether a file of the rank with another name holds the step."""
    for file in periodic(history, artifacts):
        try:
            if file.rank == save.rank and stored_step(history, artifacts, file) == save.data.get("step"):
                return True
        except CheckpointError:
            continue  # chaos.checks.checkpoint.periodic_values says so
    return False
