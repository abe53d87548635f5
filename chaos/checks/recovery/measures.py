"""The cost of a recovery beside its phases: steps trained again, and time that saving took from training."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.evidence.facts import TRAIN, ranks_text, step_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


@dataclass(frozen=True)
class Measure:
    """A figure of a run. ``value`` is None when it is not known; ``reason`` then says why.

    A value with a reason is the least that it can be.
    """

    value: float | None
    reason: str = ""


def rollback(plan: Plan, history: History) -> Measure:
    """Return the steps that the worst rank had ended and trained again after the first fault.

    Where data is sunk to the device, one record stands for all steps of a sink.
    """
    acts = history.select("fault.injecting")
    if not acts:
        return Measure(None, "no fault was injected")
    after = [event for event in history.select("step.begin") if event.mono > acts[0].mono]
    again = {rank for rank in _ranks(after) if _went_on(history, rank, acts[0].mono)}
    if not again:
        return Measure(None, "no rank is recorded to have trained on after the fault")
    missing = set(range(plan.layout.ranks)) - again if plan.resume.resumes else ()
    reason = f"nothing shows where {ranks_text(sorted(missing))} trained on" if missing else ""
    return Measure(float(max(_repeated(history, rank, plan.training.sink_size) for rank in again)), reason)


def stalled(history: History) -> Measure:
    """Return the seconds for which saving stopped the worst rank's training, up to the first fault.

    Only periodic saves count. A save in the background stops training only while the state is copied.
    """
    acts = history.select("fault.injecting")
    until = acts[0].mono if acts else None
    begins = [
        event
        for event in history.select("checkpoint.begin", attempt=TRAIN)
        if event.data.get("kind") == "periodic" and (until is None or event.mono < until)
    ]
    if not begins:
        return Measure(None, "no periodic checkpoint is recorded")
    total: dict[int | None, int] = {}
    ends = [event for event in history.select("checkpoint.end", attempt=TRAIN) if event.data.get("kind") == "periodic"]
    for begin in begins:
        end = next((event for event in ends if _same_save(begin, event)), None)
        if end is not None:  # a rank may have been killed while it saved
            total[begin.rank] = total.get(begin.rank, 0) + end.mono - begin.mono
    if not total:
        return Measure(None, "the end of no periodic checkpoint is recorded")
    return Measure(max(total.values()) / 1e9)


def _same_save(begin: Event, end: Event) -> bool:
    return (begin.rank, begin.pid, begin.data.get("path")) == (
        end.rank,
        end.pid,
        end.data.get("path"),
    ) and end.mono >= begin.mono


def _ranks(events: list[Event]) -> set[int]:
    return {event.rank for event in events if event.rank is not None}


def _of_rank(history: History, name: str, rank: int) -> list[Event]:
    return [event for event in history.select(name) if event.rank == rank]


def _went_on(history: History, rank: int, fault: int) -> bool:
    """Return whether the rank began to train anew after the fault, in any process."""
    return any(event.mono > fault for event in _of_rank(history, "train.begin", rank))


def _repeated(history: History, rank: int, sink_size: int) -> int:
    """Return the largest number of steps by which this rank went back.

    A rank with a step that ends no sink has recorded its steps one by one.
    """
    marks = sorted(
        [*_of_rank(history, "step.begin", rank), *_of_rank(history, "step.end", rank)], key=lambda event: event.mono
    )
    stride = 1 if any(step_of(mark) % sink_size for mark in marks) else sink_size
    highest, back = 0, 0
    for mark in marks:
        if mark.event == "step.end":
            highest = max(highest, step_of(mark))
        else:
            back = max(back, highest - step_of(mark) + stride)
    return back
