"""The course of a run as its harness records it: its stage, and its current wait."""

from __future__ import annotations

from collections.abc import Callable

from chaos.evidence.facts import RESUME, TRAIN
from chaos.evidence.text import readable
from chaos.history.event import Event
from chaos.live.state import Waiting

WAIT = "wait.begin"
BASELINE = "baseline"
"""The wait for the fault-free run."""


class Course:
    """The events of the harness about the run as a whole."""

    def __init__(self) -> None:
        self.start: Event | None = None
        self.last: Event | None = None
        self.end: Event | None = None
        self.running = ""
        self.baseline_key = ""
        self._stage = "preparing"
        self._wait: Event | None = None

    def take(self, event: Event) -> None:
        """Take in an event of the harness."""
        self.last = event
        match event.event:
            case "run.start":
                self.start = event
            case "wait.begin":
                self._wait = event
                if event.data.get("name") == BASELINE:
                    self._stage, self.baseline_key = "baseline", str(event.data.get("key", ""))
            case "attempt.start" if event.attempt in (TRAIN, RESUME):
                self._stage, self._wait, self.running = event.attempt, None, event.attempt
            case "attempt.end":
                self._stage, self._wait, self.running = "between", None, ""
            case "deadline.expired":
                self._wait = None
            case "run.end":
                self._stage, self._wait, self.running, self.end = "judging", None, "", event

    def epoch(self, mono: int) -> float:
        """Return a time of the monotonic clock in seconds of the epoch."""
        return 0.0 if self.last is None else (self.last.wall + mono - self.last.mono) / 1e9

    def mono(self, epoch: float) -> int:
        """Return a time in seconds of the epoch on the monotonic clock."""
        return 0 if self.last is None else self.last.mono + round(epoch * 1e9) - self.last.wall

    def until(self, now: float, *, gone: bool) -> float:
        """Return until when the run is known: ``now``, its end, or the last event of a harness that has gone."""
        last = self.end or (self.last if gone else None)
        return now if last is None else self.epoch(last.mono)

    def stage(self, verdict: str | None, alive: bool | None, *, judged: bool = True) -> str:
        """Return the stage of the run. ``judged``: it gets a verdict, which a fault-free run does not."""
        if self.end is not None and (verdict is not None or (alive is False and not judged)):
            return "ended"
        return "broken off" if alive is False else self._stage

    def limit(self) -> float | None:
        """Return the seconds that the run may take from its start on.

        They are fewer for a fault-free run and for a run that is made again: the deadline began before.
        """
        return None if self.start is None else _seconds(self.start.data.get("limit"))

    def waiting(self, now: float, missing: Callable[[str], str]) -> Waiting | None:
        """Return the wait of the harness. ``missing`` describes the missing part, by the name of the wait."""
        if self._wait is None or (limit := _seconds(self._wait.data.get("seconds"))) is None:
            return None
        if self.start is not None and (whole := self.limit()) is not None:
            # A wait ends with the time of the run as a whole, too.
            limit = max(0.0, min(limit, whole - (self._wait.mono - self.start.mono) / 1e9))
        name, goal = str(self._wait.data.get("name", "")), str(self._wait.data.get("goal", ""))
        since = self.epoch(self._wait.mono)
        return Waiting(readable(name), readable(goal), since, max(0.0, now - since), limit, readable(missing(name)))


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
