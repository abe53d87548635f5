"""How long other work kept the job waiting for a processor. The job cannot be blamed for this delay."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.evidence.fields import number
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan

WAITED = "job.starved"
"""Recorded while others keep threads of the run waiting: the time of the longest-waiting thread."""

STARVED = "harness.starved"
"""Recorded when the harness came seconds late to its clock, since it had no processor for ``seconds``."""

_HARNESS = "the harness"

MOST = 1 / 2
"""A hanging job waits for nothing that the machine could give, so less than this proves that it was not starved."""


@dataclass(frozen=True)
class CpuStarvation:
    """Nanoseconds of ``of`` that were spent waiting, the longest-waiting process, and the first record of the wait."""

    nanoseconds: int
    of: int
    process: str
    where: str

    @property
    def share(self) -> float:
        """The share of the time that was spent waiting."""
        return self.nanoseconds / self.of

    def __str__(self) -> str:
        seconds = f"{self.nanoseconds / 1e9:.3f} s of {self.of / 1e9:.3f} s"
        return (
            f"other work on the machine kept the job waiting for a processor for {seconds}, most of it {self.process}"
        )


def cpu_starvation(plan: Plan, history: History, begin: int, end: int) -> CpuStarvation | None:
    """Return the waiting between two moments of the monotonic clock, in nanoseconds.

    At each moment the longest-waiting process counts, since the dependencies of the others are not known; ranks wait
    for the harness too. None where no process was seen to wait, or a fault of the plan lets ranks wait on purpose: such
    a scenario asks for the budget all the same.
    """
    if end <= begin or any(effect_of(fault.kind).starves for fault in plan.faults):
        return None
    by_process: dict[str, int] = {}
    first = ""
    events = history.select(WAITED)
    for event in events:
        if waited := _within(event, begin, end):
            first = first or event.source
            process = str(event.data.get("process"))
            by_process[process] = by_process.get(process, 0) + waited
    for event in history.select(STARVED):
        more = _within(event, begin, end) - sum(_within(waited, *_common(event, begin, end)) for waited in events)
        if more > 0:
            first = first or event.source
            by_process[_HARNESS] = by_process.get(_HARNESS, 0) + more
    if not by_process:
        return None
    longest = max(by_process, key=lambda process: by_process[process])
    return CpuStarvation(sum(by_process.values()), end - begin, longest, first)


def _common(event: Event, begin: int, end: int) -> tuple[int, int]:
    """Return the part of an event's span that lies between the two moments."""
    return max(int(event.data["since"]), begin), min(int(event.data["until"]), end)


def _within(event: Event, begin: int, end: int) -> int:
    """Return the possible waiting of a look between the two moments, in nanoseconds."""
    since, until, seconds = event.data.get("since"), event.data.get("until"), number(event.data, "seconds")
    if not isinstance(since, int) or not isinstance(until, int) or seconds is None:
        return 0
    return max(0, int(min(min(until, end) - max(since, begin), seconds * 1e9)))
