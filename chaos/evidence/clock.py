"""From the wall clock of a log line to the monotonic clock of the history.

A log has local times without a zone; the history has both clocks in every event. The zone follows from the facts of
both, so the result does not depend on where the run is judged: nothing is logged before the start of the writing
process, nor after the end of the launch. All offsets in use are whole quarters of an hour, most of them whole hours.
Each host has a wall clock of its own; a log's clock is that of the host on which the writing process began.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from statistics import median_low

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import TRAIN
from chaos.history.event import Event
from chaos.history.reader import History, clock_name
from chaos.observe.logs.log_event import LogEvent

JUMP_NS = 50_000_000
"""Wall and monotonic clock may drift apart by this much within a run. More is a jump, and log times mean nothing."""

_UNORDERED_NS = 1_000_000_000
"""A line may come this much later than a line with a later time: a thread that has taken the time may have to wait
until it can write. The history shows where the clock itself has jumped."""

_AROUND, _AGREE, _NEAR_NS = 4, 3, 5_000_000
"""Where a process lost its processor between reading the two clocks, its event lies apart from the events around it,
which agree: so many of so many on either side, within this time. After a jump the two sides do not agree."""

_OF_NODE = re.compile(r"/ttp-node_(\d{1,9})/")
_QUARTER_NS = 15 * 60 * 1_000_000_000
_BY_USE = (4, 2, 1)
"""Quarters of an hour of which a zone's offset is a multiple: whole hours are the likeliest."""

_LATE_NS = 10 * 60 * 1_000_000_000
"""A process may log this much later than the history's last event of its host: its agent has ended before. No two zones
are so close."""


class ClockError(Exception):
    """The time of a log line cannot be placed on the monotonic clock. The text says why."""


@dataclass(frozen=True)
class LogClock:
    """Places log times of one attempt. Made by :func:`log_clock`."""

    points: dict[str, _Points]
    zones: dict[str, int]
    hosts: dict[str, str]
    ends: dict[str, int]

    def mono(self, event: LogEvent) -> int:
        """Return nanoseconds of the harness's monotonic clock.

        Raises ClockError when the line's time or zone is not known.
        """
        return self.placed(event).mono

    def placed(self, event: LogEvent) -> Event:
        """Return the moment of the line as an event of the history: the clock on which it was read, and its error."""
        if event.wall_ns is None or event.file not in self.zones:
            raise ClockError(f"{event.source} has no time that can be placed")
        clock = self.hosts[event.file]
        wall = event.wall_ns - self.zones[event.file]
        if wall > self.ends[event.file] + _LATE_NS:
            late = (wall - self.ends[event.file]) / 1e9
            raise ClockError(f"{event.source} is {late:.3f} s behind the end of the launch: its log's zone has changed")
        mono, error = self.points[clock].mono(wall)
        return Event("log", mono, wall, "log", 0, source=event.source, clock=clock, error=error)


@dataclass(frozen=True)
class _Points:
    """Both clocks of a host at every event of its part of the history, in order of the wall clock."""

    walls: tuple[int, ...]
    offsets: tuple[int, ...]
    errors: tuple[int, ...]

    def mono(self, wall: int) -> tuple[int, int]:
        right = bisect_left(self.walls, wall)
        near = min(
            (index for index in (right - 1, right) if 0 <= index < len(self.walls)),
            key=lambda index: abs(self.walls[index] - wall),
        )
        return wall + self.offsets[near], self.errors[near]


def log_clock(history: History, artifacts: Artifacts) -> LogClock:
    """Return the clock of the faulted launch's logs.

    Raises ClockError when the wall clock jumped against the monotonic one, when a log's own times run back, or when
    there is nothing to compare with.
    """
    points = {clock: _points(events) for clock, events in _by_clock(history).items()}
    if not points:
        raise ClockError("the history is empty")
    zones: dict[str, int] = {}
    hosts: dict[str, str] = {}
    ends: dict[str, int] = {}
    starts: dict[str, tuple[Event, int]] = {}
    latest: dict[str, int] = {}
    for event in artifacts.sdk_events(TRAIN):
        if event.wall_ns is None:
            continue
        back = latest.get(event.file, event.wall_ns) - event.wall_ns
        if back > _UNORDERED_NS:
            raise ClockError(f"the times in {event.file} run back by {back / 1e9:.3f} s at line {event.line}")
        latest[event.file] = max(latest.get(event.file, 0), event.wall_ns)
        if event.file not in starts:
            starts[event.file] = (_start(history, event), event.wall_ns)
    for file, (start, first) in starts.items():
        hosts[file] = start.clock
        ends[file] = max(event.wall for event in history.select(attempt=TRAIN) if event.clock == start.clock)
        zones[file] = _zone(first - start.wall, latest[file] - ends[file])
    return LogClock(points, zones, hosts, ends)


def _zone(after_start: int, after_end: int) -> int:
    """Return the offset of a log's zone.

    It follows from the distance of the first line from the start, and of the last line from the end. A process may take
    long until it logs: of several possible offsets the commonest counts, then the one nearest to the start. This holds
    also where none is possible, since the zone has changed in between.
    """
    most = (after_start + JUMP_NS) // _QUARTER_NS
    least = -((_LATE_NS - after_end) // _QUARTER_NS)
    for multiple in _BY_USE:
        chosen = most // multiple * multiple
        if chosen >= least:
            return chosen * _QUARTER_NS
    return most * _QUARTER_NS


def _named_pid(file: str) -> int:
    """Return the process number at the end of an SDK log's name; -1 without a number."""
    _, _, number = file.rpartition(".")
    return int(number) if number.isascii() and number.isdigit() else -1


def _clocks_of_its_node(history: History, file: str) -> set[str] | None:
    """Return the clocks of the node whose directory holds this log of the SDK; None for a log outside node directories.

    Each host counts its processes by itself: one number may name a process on each of them.
    """
    in_node = _OF_NODE.search(file)
    if in_node is None:
        return None
    node = int(in_node[1])
    measured = (event.data for event in history.select("clock") if event.data.get("node") == node)
    return {clock_name(str(offset.get("host")), str(offset.get("boot"))) for offset in measured}


def _by_clock(history: History) -> dict[str, list[Event]]:
    grouped: dict[str, list[Event]] = {}
    for event in history.events:
        grouped.setdefault(event.clock, []).append(event)
    return grouped


def _points(events: list[Event]) -> _Points:
    """Return both clocks of a host at its events. Raises ClockError when the host's wall clock jumped."""
    if _drift(events) > JUMP_NS:
        events = _without_starved_steps(events)
    if (drift := _drift(events)) > JUMP_NS:
        raise ClockError(f"the wall clock jumped by {drift / 1e9:.3f} s during the run")
    points = sorted((event.wall, _offset(event), event.error) for event in events)
    return _Points(*(tuple(values) for values in zip(*points, strict=True)))


def _offset(event: Event) -> int:
    return event.mono - event.wall


def _drift(events: list[Event]) -> int:
    return max(map(_offset, events)) - min(map(_offset, events))


def _without_starved_steps(events: list[Event]) -> list[Event]:
    """Return the events without those whose process lost its processor between reading one clock and the other."""
    in_order = sorted(events, key=lambda event: event.mono)
    offsets = [_offset(event) for event in in_order]
    return [event for index, event in enumerate(in_order) if not _lies_apart(offsets, index)]


def _lies_apart(offsets: list[int], index: int) -> bool:
    sides = offsets[max(0, index - _AROUND) : index], offsets[index + 1 : index + 1 + _AROUND]
    usual = median_low([*sides[0], *sides[1]])
    return abs(offsets[index] - usual) > _NEAR_NS and all(
        sum(abs(offset - usual) <= _NEAR_NS for offset in side) >= _AGREE for side in sides
    )


def _start(history: History, event: LogEvent) -> Event:
    """Return the start of the process that wrote a log: it knows both clocks of its host, and the log its zone."""
    starts = history.select("agent.start", attempt=TRAIN, pid=event.pid) if event.pid is not None else []
    if any(not clock.same for clock in history.clocks.values()):
        named = history.select("agent.start", attempt=TRAIN, pid=_named_pid(event.file))
        node_clocks = _clocks_of_its_node(history, event.file)
        starts, named = (
            [fact for fact in events if node_clocks is None or fact.clock in node_clocks] for events in (starts, named)
        )
        starts = starts or named
        if len({fact.clock for fact in starts}) != 1:
            known = "on several hosts" if starts else "known on no host"
            raise ClockError(f"the host that wrote {event.file} is unknown: process {event.pid} is {known}")
    start = next(iter(starts), None)
    start = start or history.first("attempt.start", attempt=TRAIN)
    if start is None or event.wall_ns is None:
        raise ClockError(f"nothing shows the time zone of {event.file}")
    return start
