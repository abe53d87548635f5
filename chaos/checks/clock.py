"""From the wall clock of a log line to the monotonic clock of the history.

A log has local times without a zone; the history has both clocks in every event. The zone is found by a moment that
both know, the start of the process that wrote the log, so the result does not depend on where the run is judged. All
offsets in use are whole quarters of an hour.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from chaos.checks.artifacts import Artifacts
from chaos.checks.facts import TRAIN
from chaos.history.reader import History
from chaos.observe.log_event import LogEvent

JUMP_NS = 50_000_000
"""Wall and monotonic clock may drift apart by this much within a run. More is a jump, and log times mean nothing."""

_QUARTER_NS = 15 * 60 * 1_000_000_000


class ClockError(Exception):
    """The time of a log line cannot be placed on the monotonic clock. The text says why."""


@dataclass(frozen=True)
class LogClock:
    """Places log times of one attempt. Made by :func:`log_clock`."""

    walls: tuple[int, ...]
    offsets: tuple[int, ...]
    zones: dict[str, int]

    def mono(self, event: LogEvent) -> int:
        """Nanoseconds of the monotonic clock. Raises ClockError when the line's time or zone is not known."""
        if event.wall_ns is None or event.file not in self.zones:
            raise ClockError(f"{event.source} has no time that can be placed")
        wall = event.wall_ns - self.zones[event.file]
        right = bisect_left(self.walls, wall)
        near = min(
            (index for index in (right - 1, right) if 0 <= index < len(self.walls)),
            key=lambda index: abs(self.walls[index] - wall),
        )
        return wall + self.offsets[near]


def log_clock(history: History, artifacts: Artifacts) -> LogClock:
    """The clock of the faulted launch's logs.

    Raises ClockError when the wall clock jumped against the monotonic one, when a log's own times run back, or when
    there is nothing to compare with.
    """
    points = sorted((one.wall, one.mono - one.wall) for one in history.events)
    if not points:
        raise ClockError("the history is empty")
    offsets = [offset for _, offset in points]
    drift = max(offsets) - min(offsets)
    if drift > JUMP_NS:
        raise ClockError(f"the wall clock jumped by {drift / 1e9:.3f} s during the run")
    zones: dict[str, int] = {}
    latest: dict[str, int] = {}
    for event in artifacts.sdk_events(TRAIN):
        if event.wall_ns is None:
            continue
        back = latest.get(event.file, event.wall_ns) - event.wall_ns
        if back > JUMP_NS:
            raise ClockError(f"the times in {event.file} run back by {back / 1e9:.3f} s at line {event.line}")
        latest[event.file] = max(latest.get(event.file, 0), event.wall_ns)
        if event.file not in zones:
            zones[event.file] = _zone(history, event)
    return LogClock(tuple(wall for wall, _ in points), tuple(offsets), zones)


def _zone(history: History, event: LogEvent) -> int:
    """Nanoseconds that the log's local time is ahead of UTC, by the start of the process that wrote it."""
    start = history.first("agent.start", attempt=TRAIN, pid=event.pid) if event.pid is not None else None
    start = start or history.first("attempt.start", attempt=TRAIN)
    if start is None or event.wall_ns is None:
        raise ClockError(f"nothing tells the time zone of {event.file}")
    return round((event.wall_ns - start.wall) / _QUARTER_NS) * _QUARTER_NS
