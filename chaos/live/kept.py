"""The events that recoveries and ends are judged by: as many for a run of any length.

Nearly all events of a history are steps and digests. For each rank the first steps after the last fault are kept, and
the latest ones; digests are not kept.
"""

from __future__ import annotations

from chaos.history.event import Event
from chaos.history.reader import History

_STEPS = ("step.begin", "step.end")
_LEFT_OUT = ("digest", "initial", "update.reported", "job.starved", "agent.cost")
_FIRST = 32
"""Steps of a rank that are kept after a fault, besides the latest."""

Key = tuple[str, str | None, int | None]


class Kept:
    """A history with the needed events only. ``version`` changes with its content."""

    def __init__(self) -> None:
        self.version = 0
        self._events: list[Event] = []
        self._first: dict[Key, list[Event]] = {}
        self._latest: dict[Key, Event] = {}
        self._hit = False
        self._made: tuple[int, History] = (0, History())

    def take(self, event: Event) -> None:
        """Take in an event."""
        if event.event in _LEFT_OUT:
            return
        self.version += 1
        if event.event not in _STEPS:
            self._events.append(event)
            if event.event == "fault.injecting":
                self._first = {key: [latest] for key, latest in self._latest.items()}
                self._hit = True
            return
        key = (event.event, event.attempt, event.rank)
        self._latest[key] = event
        first = self._first.setdefault(key, []) if self._hit else []
        if len(first) <= _FIRST:
            first.append(event)

    def history(self) -> History:
        """Return the kept events as a history, in order of time."""
        if self._made[0] != self.version:
            steps = {id(event): event for events in self._first.values() for event in events}
            steps |= {id(event): event for event in self._latest.values()}
            every = sorted([*self._events, *steps.values()], key=lambda event: event.mono)
            self._made = (self.version, History(tuple(every)))
        return self._made[1]
