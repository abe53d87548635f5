"""The times of the steps of a training: before the fault, after the last recovery and in the fault-free run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chaos.evidence.facts import RESUME, TRAIN, step_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


@dataclass(frozen=True)
class Step:
    """One step of one rank. ``before`` is the end of the rank's step before it, in the same training."""

    begin: Event
    end: Event
    before: Event

    @property
    def taken(self) -> int:
        """The nanoseconds from its beginning to its end."""
        return self.end.mono - self.begin.mono

    @property
    def with_gap(self) -> int:
        """The nanoseconds from the end of the step before to its end: loading of data and saving are between them."""
        return self.end.mono - self.before.mono


def steps(history: History, attempt: str, since: int = 0) -> Iterator[Step]:
    """Yield the steps that each process has ended since a moment, without the first step of each training."""
    yield from _paired(_in_order(history, attempt, "train.begin", "step.begin", "step.end"), since)


def _paired(events: Iterable[Event], since: int) -> Iterator[Step]:
    """Yield each step's beginning with its end, without the first step after each beginning of a training."""
    last: dict[tuple[int | None, int | None], Event] = {}
    begun: dict[tuple[int | None, int | None], Event] = {}
    for event in events:
        process = (event.rank, event.pid)
        if event.event == "train.begin" or event.mono < since:
            last.pop(process, None)
            begun.pop(process, None)
        elif event.event == "step.begin":
            begun[process] = event
        elif process in begun:
            begin = begun.pop(process)
            if process in last and step_of(begin) == step_of(event):
                yield Step(begin, event, last[process])
            last[process] = event


def steps_of_baseline(baseline: History) -> Iterator[Step]:
    """Yield the steps of the fault-free run, without the first.

    A job that trains each epoch anew is slower there.
    """
    yield from _paired(_in_order(baseline, TRAIN, "step.begin", "step.end"), 0)


def _in_order(history: History, attempt: str, *names: str) -> list[Event]:
    """Return the events under these names, in the order of each process."""
    return sorted(
        (event for name in names for event in history.select(name, attempt=attempt)), key=lambda event: event.seq
    )


def steps_afterwards(plan: Plan, history: History, act: int) -> Iterator[Step]:
    """Yield the steps that count: the restarted job's, else the steps since the launch's last training began."""
    if plan.resume.resumes:
        yield from steps(history, RESUME)
        return
    begins = [event.mono for event in history.select("train.begin", attempt=TRAIN) if event.mono > act]
    # The teardown ends a fault that lasts, too, behind all steps.
    last = max((event.mono for event in history.select("step.end", attempt=TRAIN)), default=act)
    ends = [event.mono for event in history.select("fault.ending", attempt=TRAIN) if act < event.mono < last]
    if begins or ends:
        yield from steps(history, TRAIN, max([*begins, *ends]))


def of_job(steps: Iterable[Step]) -> list[Step]:
    """Return the slowest rank's time of each step: the others have waited for it, or for each other."""
    longest: dict[int, Step] = {}
    for taken_step in steps:
        step = step_of(taken_step.begin)
        if step not in longest or longest[step].taken < taken_step.taken:
            longest[step] = taken_step
    return list(longest.values())
