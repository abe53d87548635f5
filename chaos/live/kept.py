"""The events that recoveries and ends are judged by: as many for a run of any length.

Nearly all events of a history are steps, digests, and saves of checkpoints. Of events that are alike, the first at the
beginning of the job are kept, the first since the latest recovery began, and the latest of all. Digests are not kept,
and of steps none before the first fault but the latest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.history.event import Event
from chaos.history.reader import History

_STEPS = ("step.begin", "step.end")
_LEFT_OUT = ("digest", "initial", "update.reported", "job.starved", "agent.cost")
_FIRST = 32
"""Events of a kind that are kept, of each process, from the beginning of the job or of a recovery."""
_APART = ("fault", "name", "kind", "child_rank", "node", "role")
"""Fields by which two events of a process are not alike, although they have one name."""

Key = tuple[object, ...]


@dataclass
class _Alike:
    """Events that are alike: the first of the job, the first of the recovery, and the latest."""

    latest: Event
    first: list[Event] = field(default_factory=list)
    of_recovery: list[Event] = field(default_factory=list)


class Kept:
    """A history with the needed events only. ``version`` changes with its content.

    ``recoveries`` has the number of the planned recovery that each fault calls for. A fault of the same recovery, or
    of none, begins no other one.
    """

    def __init__(self, recoveries: Mapping[str, int]) -> None:
        self.version = 0
        self._recoveries = recoveries
        self._number: int | None = None
        self._alike: dict[Key, _Alike] = {}
        self._made: tuple[int, History] = (0, History())

    def take(self, event: Event) -> None:
        """Take in an event."""
        if event.event in _LEFT_OUT:
            return
        self.version += 1
        if event.event == "fault.injecting":
            self._begin_recovery(self._recoveries.get(str(event.data.get("fault")), 0))
        is_step = event.event in _STEPS
        key: Key = (event.event, event.attempt, event.rank, event.pid)
        key = key if is_step else (*key, *(str(event.data.get(name)) for name in _APART))
        alike = self._alike.setdefault(key, _Alike(event))
        alike.latest = event
        if not is_step and len(alike.first) < _FIRST:
            alike.first.append(event)
        if self._number is not None and len(alike.of_recovery) <= _FIRST:
            alike.of_recovery.append(event)

    def _begin_recovery(self, number: int) -> None:
        """Keep the first events from now on, and the latest before, unless an earlier or no recovery is called for."""
        if self._number is not None and number <= self._number:
            return
        self._number = number
        for alike in self._alike.values():
            alike.of_recovery = [alike.latest]

    def history(self) -> History:
        """Return the kept events as a history, in order of time."""
        if self._made[0] != self.version:
            kept = {
                id(event): event
                for alike in self._alike.values()
                for event in (*alike.first, *alike.of_recovery, alike.latest)
            }
            every = sorted(kept.values(), key=lambda event: event.mono)
            self._made = (self.version, History(tuple(every)))
        return self._made[1]
