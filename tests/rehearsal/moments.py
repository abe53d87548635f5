"""Moments of a run, found again in another run of the same scenario."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass

from chaos.history.event import Event
from chaos.history.reader import History
from tests.rehearsal.kit import Harness, Run


@dataclass(frozen=True)
class Moment:
    """So many seconds after the n-th event like this, counted from 0."""

    event: str
    attempt: str | None
    rank: int | None
    number: int
    seconds: float

    def __str__(self) -> str:
        writer = " ".join(str(one) for one in (self.attempt, self.rank) if one is not None)
        return f"{self.seconds:.3f} s after {self.event} ({writer}) number {self.number}"

    def wait(self, harness: Harness, run: Run) -> None:
        """Wait for it. The harness may end before, where the moment is close to its end."""
        harness.until(str(self), lambda: self._seen(run.history) or harness.process.poll() is not None)
        try:
            harness.process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            return

    def _seen(self, history: History) -> bool:
        return len(history.select(self.event, attempt=self.attempt, rank=self.rank)) > self.number


def draw(source: random.Random, history: History, begin: Event, end: Event) -> Moment:
    """A moment between two events, uniform in time. An event that comes at once with others is taken as well."""
    at = source.randint(begin.mono, end.mono)
    seen = [event for event in history.events if event.mono <= at]
    last = seen[-1]
    like = [
        event for event in seen if (event.event, event.attempt, event.rank) == (last.event, last.attempt, last.rank)
    ]
    return Moment(last.event, last.attempt, last.rank, len(like) - 1, (at - last.mono) / 1e9)
