"""From the wall clock of a log line to the monotonic clock of the history.

A log has local times without a zone; the history has both clocks in every event. The zone is found by what both know,
so the result does not depend on where the run is judged: nothing is logged before the process that wrote the log had
started, nor after the launch had ended. All offsets in use are whole quarters of an hour, most of them whole hours.
Each host has a wall clock of its own; a log's is that of the host on which the process that wrote it began.
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
"""A line may come so much later than one of a later time: a thread that has taken the time may have to wait until it
can write. Where the clock itself has jumped the history tells."""

_AROUND, _AGREE, _NEAR_NS = 4, 3, 5_000_000
"""An event between whose two clocks its process had no processor lies apart from those around it, which agree: so many
of so many on either side of it, within so much. After a jump the two sides do not agree."""

_OF_NODE = re.compile(r"/ttp-node_(\d{1,9})/")
_QUARTER_NS = 15 * 60 * 1_000_000_000
_BY_USE = (4, 2, 1)
"""Quarters of an hour of which a zone's offset is a multiple: whole hours are the likeliest."""

_LATE_NS = 10 * 60 * 1_000_000_000
"""A process may log after the last that the history has of its host: its agent has ended before. No zone is so near to
another."""


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
        """Nanoseconds of the harness's monotonic clock. Raises ClockError when the line's time or zone is not known."""
        return self.placed(event).mono

    def placed(self, event: LogEvent) -> Event:
        """Return the moment of the line as one of the history: on which clock it was read, and how wrong it may be."""
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
    """Both clocks of a host, wherever its part of the history has them, in order of the wall clock."""

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
    """Return the offset of a log's zone, by how far its first line is behind the start and its last behind the end.

    A process may take long until it logs: of several that are possible the commonest counts, then the one nearest to
    the start; that also where none is possible, since the zone has changed in between.
    """
    most = (after_start + JUMP_NS) // _QUARTER_NS
    least = -((_LATE_NS - after_end) // _QUARTER_NS)
    for multiple in _BY_USE:
        chosen = most // multiple * multiple
        if chosen >= least:
            return chosen * _QUARTER_NS
    return most * _QUARTER_NS


def _named_pid(file: str) -> int:
    """Return the process that the name of a log of the SDK ends in; -1 where it ends in none."""
    _, _, number = file.rpartition(".")
    return int(number) if number.isascii() and number.isdigit() else -1


def _clocks_of_its_node(history: History, file: str) -> set[str] | None:
    """Return the clocks of the node whose directory this log of the SDK is in; None where it is in that of no node.

    Hosts count processes by themselves: one number may be that of a process on each of them.
    """
    in_node = _OF_NODE.search(file)
    if in_node is None:
        return None
    node = int(in_node[1])
    measured = (event.data for event in history.select("clock") if event.data.get("node") == node)
    return {clock_name(str(offset.get("host")), str(offset.get("boot"))) for offset in measured}


def _by_clock(history: History) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in history.events:
        found.setdefault(event.clock, []).append(event)
    return found


def _points(events: list[Event]) -> _Points:
    """Raises ClockError when the host's wall clock jumped."""
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
    """Without those whose process was kept from the processor after it had read one clock and before the other."""
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
        own = _clocks_of_its_node(history, event.file)
        starts, named = ([fact for fact in events if own is None or fact.clock in own] for events in (starts, named))
        starts = starts or named
        if len({fact.clock for fact in starts}) != 1:
            known = "on several hosts" if starts else "known on no host"
            raise ClockError(f"which host wrote {event.file} cannot be told: process {event.pid} is {known}")
    start = next(iter(starts), None)
    start = start or history.first("attempt.start", attempt=TRAIN)
    if start is None or event.wall_ns is None:
        raise ClockError(f"nothing tells the time zone of {event.file}")
    return start
