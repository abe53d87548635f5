"""Periodic checkpoints that are written in the background: whether a save was finished, by the rank's own record.

The call that begins such a save returns at once, and its record says no more than that. The agent records the end of
the writing itself (``checkpoint.written``), also one that has failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import TRAIN, text_list
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

WRITTEN = "checkpoint.written"


def is_background(save: Event) -> bool:
    """Return whether a record of a save is of one that goes on in the background."""
    return save.data.get("asynchronous") is True


def is_late(save: Event) -> bool:
    """Return whether a record of a save is of one that a thread of the job's own has made while the loop went on.

    The record stands where the writing was begun, and has the step in which the state was taken, or none.
    """
    return save.data.get("late") is True


def written(history: History, save: Event) -> Event | None:
    """Return the end of the writing that ``save`` has begun; None without a record."""
    ends = history.select(WRITTEN, attempt=save.attempt, rank=save.rank, path=save.data.get("path"))
    return next(
        (event for event in ends if event.pid == save.pid and event.data.get("step") == save.data.get("step")), None
    )


def is_finished(history: History, save: Event, before: int) -> bool:
    """Return whether the file of a returned save was whole before the time ``before``."""
    if not is_background(save):
        return save.mono < before
    end = written(history, save)
    return end is not None and end.data.get("ok") is True and end.mono < before


def background_doubts(plan: Plan, history: History, fault: PlannedFault) -> Iterator[Doubt]:
    """Yield reasons to doubt that the fault came when the checkpoint that the plan goes on from was written.

    The plan takes the last save that was begun. Where it was still under way, another save is the last.
    """
    steps = {
        recovery.step
        for recovery in plan.response.recoveries
        if recovery.reads_checkpoint and fault.id in recovery.faults
    }
    if plan.resume.restore is not None and fault.effect.ends:
        steps.add(plan.resume.restore.step)
    if not steps:
        return
    for rank in range(plan.layout.ranks):
        saves = history.select("checkpoint.begin", attempt=TRAIN, rank=rank, kind="periodic")
        begun = [event for event in saves if is_background(event) and event.data.get("step") in steps]
        yield from _late_doubts(history, [event for event in saves if is_late(event)], steps)
        if not begun:
            continue
        step = begun[-1].data.get("step")
        end = written(history, begun[-1])
        if end is None:
            observation = f"rank {rank} has not recorded that its checkpoint of step {step} was written"
            yield f"{observation}: the fault may have come before, and then it is not the last one", (begun[-1].source,)
        elif end.data.get("ok") is not True:
            observation = f"rank {rank} has recorded that its checkpoint of step {step} could not be written"
            yield f"{observation}: it is not the last one", (begun[-1].source, end.source)


def _late_doubts(history: History, saves: list[Event], steps: set[int | None]) -> Iterator[Doubt]:
    """Yield that a rank which saves in a thread of its own has not saved the planned step, nor has any other rank."""
    ended = {event.data.get("step") for event in history.select("checkpoint.end", attempt=TRAIN) if is_late(event)}
    if saves and not steps & ended:
        step = text_list(sorted(str(step) for step in steps))
        observation = f"rank {saves[-1].rank} saves in a thread of its own, and has recorded no end of a save of step"
        yield f"{observation} {step}: the fault may have come before it", (saves[-1].source,)
