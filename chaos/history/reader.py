"""Reading the history of a run: every writer's file, merged by the monotonic clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from chaos.history.earlier_names import EARLIER_NAMES
from chaos.history.event import Event
from chaos.history.host_clock import EVENT, HostClock, Offset
from chaos.history.jsonl import MAX_LINE, UnreadableFile, decode, read_lines
from chaos.history.last_names import with_last_names

ProblemKind = Literal[
    "torn-last-line", "torn-line", "garbled-line", "line-too-long", "seq", "clock-back", "no-writer-start", "unreadable"
]
"""Kinds of problems.

torn-last-line: the writer was killed, which a scenario may well do; also a file that is still empty. torn-line: the
same, in a file that was resumed. All other kinds mean that the record is damaged or incomplete.
"""

MAX_BYTES = 256 << 20
"""Bytes of all files of a history together. Its events take about ten times as much in memory."""

MAX_PROBLEMS = 1000
"""Problems of one file after which the rest of it is not read: it is not a history, or nothing can be recovered."""

HARNESS = "harness"
"""The writer whose clock all times are placed on."""

_LARGEST = 2**63 - 1
_FRAME = ("seq", "mono", "wall", "event", "attempt", "rank", "pid")


@dataclass(frozen=True)
class Problem:
    """A problem of the record itself. ``where`` is ``history/<file>:<line>``."""

    kind: ProblemKind
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True)
class History:
    """All events of a run in order of time, and the problems of its files.

    ``clocks`` holds the other hosts' clocks as the harness measured them, by host and boot.
    """

    events: tuple[Event, ...] = ()
    problems: tuple[Problem, ...] = ()
    clocks: Mapping[tuple[str, str], HostClock] = field(default_factory=dict)

    def select(
        self,
        event: str | None = None,
        /,
        *,
        attempt: str | None = None,
        rank: int | None = None,
        pid: int | None = None,
        writer: str | None = None,
        **data: Any,
    ) -> list[Event]:
        """Return the events in order of time that match everything given. None matches anything."""
        candidates = self._candidates(event, rank)
        return [
            candidate
            for candidate in candidates
            if (attempt is None or candidate.attempt == attempt)
            and (rank is None or candidate.rank == rank)
            and (pid is None or candidate.pid == pid)
            and (writer is None or candidate.writer == writer)
            and all(key in candidate.data and candidate.data[key] == value for key, value in data.items())
        ]

    def first(self, event: str | None = None, /, **match: Any) -> Event | None:
        """Return the earliest event that ``select`` finds, or None."""
        return next(iter(self.select(event, **match)), None)

    def last(self, event: str | None = None, /, **match: Any) -> Event | None:
        """Return the latest event that ``select`` finds, or None."""
        return next(reversed(self.select(event, **match)), None)

    def _candidates(self, event: str | None, rank: int | None) -> Sequence[Event]:
        if event is not None and rank is not None:
            return self._by_name_and_rank.get((event, rank), ())
        return self.events if event is None else self._by_name.get(event, ())

    @cached_property
    def _by_name_and_rank(self) -> dict[tuple[str, int | None], list[Event]]:
        index: dict[tuple[str, int | None], list[Event]] = {}
        for event in self.events:
            index.setdefault((event.event, event.rank), []).append(event)
        return index

    @cached_property
    def _by_name(self) -> dict[str, list[Event]]:
        index: dict[str, list[Event]] = {}
        for event in self.events:
            index.setdefault(event.event, []).append(event)
        return index


def read_history(directory: Path) -> History:
    """Read every ``*.jsonl`` of ``directory``.

    Nothing in a file makes the function raise: an unreadable part is a problem with its place. Events keep their order
    within a file even where its clock runs back. Times of a host whose clock the harness has measured are placed on the
    harness's clock. Times of other boots cannot be compared, so events are ordered by boot first, and boots by the wall
    clock.
    """
    problems: list[Problem] = []
    segments: list[_Segment] = []
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".jsonl")
        size = sum(path.lstat().st_size for path in paths)
    except OSError as error:
        return _nothing(directory, f"cannot be listed: {error.strerror}")
    if directory.is_symlink():
        return _nothing(directory, "is a link, and links are not followed")
    if size > MAX_BYTES:
        advice = "run it with a larger job.digest_interval or fewer steps"
        return _nothing(directory, f"its files have {size:,} bytes, and at most {MAX_BYTES:,} are read: {advice}")
    for path in paths:
        file = _File(path, f"{directory.name}/{path.name}")
        segments += file.read()
        problems += file.problems
    clocks = _clocks(segments)
    return History(tuple(with_last_names(_merge(_placed(segments, clocks)))), tuple(problems), clocks)


def _nothing(directory: Path, why: str) -> History:
    return History(problems=(Problem("unreadable", directory.name, why),))


@dataclass
class _Segment:
    """Events that one writer recorded in one boot of one host, in order of their lines."""

    boot: str
    host: str = ""
    writer: str = ""
    events: list[Event] = field(default_factory=list)


class _File:
    """One writer's file while it is read."""

    def __init__(self, path: Path, name: str) -> None:
        self.problems: list[Problem] = []
        self._path = path
        self._name = name
        self._writer = path.stem
        self._next_seq = 0
        self._started = False
        self._segments = [_Segment("")]

    def read(self) -> list[_Segment]:
        garbled: int | None = None
        lines = whole = 0
        try:
            for line in read_lines(self._path):
                where = f"{self._name}:{line.number}"
                lines += 1
                whole += not line.torn
                if line.text is None:
                    self._problem("line-too-long", where, f"a line of more than {MAX_LINE} bytes was refused")
                elif line.torn:
                    self._problem("torn-last-line", where, "the last line is torn: its writer was ended while writing")
                else:
                    event = self._event(line.text, where)
                    if event is None:
                        garbled = line.number
                    else:
                        self._take(event, garbled_before=garbled == line.number - 1)
                if len(self.problems) >= MAX_PROBLEMS:
                    self._problem("unreadable", where, f"after {MAX_PROBLEMS} problems the rest is not looked at")
                    break
        except UnreadableFile as error:
            self._problem("unreadable", self._name, str(error))
        except OSError as error:
            self._problem("unreadable", self._name, f"cannot be read to its end: {error.strerror}")
        else:
            if not lines:
                self._problem(
                    "torn-last-line", f"{self._name}:1", "the file is empty: its writer was ended at its start"
                )
            elif whole and not self._started:
                self._problem("no-writer-start", f"{self._name}:1", "the file holds no writer.start")
        return self._segments

    def _event(self, text: bytes, where: str) -> Event | None:
        try:
            return parse_event(text, self._writer, where)
        except ValueError as error:
            self._problem("garbled-line", where, f"not an event: {error}")
            return None

    def _take(self, event: Event, *, garbled_before: bool) -> None:
        if not self._started:
            self._started = True
            if event.event != "writer.start":
                self._problem("no-writer-start", event.source, f"the first event is {event.event}, not writer.start")
        if event.event == "writer.resume" and garbled_before and self.problems[-1].kind == "garbled-line":
            torn = self.problems.pop()
            self._problem("torn-line", torn.where, "the line is torn: its writer was ended while writing")
        if event.event in ("writer.start", "writer.resume"):
            self._writer = str(event.data.get("writer", self._writer))
            event = replace(event, writer=self._writer)
            where = (str(event.data.get("boot", "")), str(event.data.get("host", "")), self._writer)
            last = self._segments[-1]
            if where != (last.boot, last.host, last.writer):
                self._segments.append(_Segment(*where))
        events = self._segments[-1].events
        if event.seq != self._next_seq:
            self._problem("seq", event.source, f"seq {event.seq} where {self._next_seq} was expected")
        self._next_seq = event.seq + 1
        if events and event.mono < events[-1].mono:
            self._problem(
                "clock-back", event.source, f"the monotonic clock runs back by {events[-1].mono - event.mono} ns"
            )
        events.append(event)

    def _problem(self, kind: ProblemKind, where: str, text: str) -> None:
        self.problems.append(Problem(kind, where, text))


def parse_event(text: bytes, writer: str, where: str) -> Event:
    """Return the event of one line. Raises ValueError for a line that is no event."""
    record = decode(text)
    seq, mono, wall = (_integer(record, key) for key in ("seq", "mono", "wall"))
    if seq is None or mono is None or wall is None or min(seq, mono, wall) < 0 or max(seq, mono, wall) > _LARGEST:
        raise ValueError("seq, mono and wall are needed, cannot be negative and fit 64 bits")
    name, attempt = record.get("event"), record.get("attempt")
    if not isinstance(name, str) or not name:
        raise ValueError("event must be a name")
    if not (attempt is None or isinstance(attempt, str)):
        raise ValueError("attempt must be a name or null")
    rank, pid = _integer(record, "rank"), _integer(record, "pid")
    if not (rank is None or -1 <= rank <= _LARGEST) or not (pid is None or 0 <= pid <= _LARGEST):
        raise ValueError(f"rank {rank} or pid {pid} cannot be")
    data = {key: value for key, value in record.items() if key not in _FRAME}
    return Event(EARLIER_NAMES.get(name, name), mono, wall, writer, seq, attempt, rank, pid, data, where)


def _integer(record: dict[str, Any], key: str) -> int | None:
    value = record.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{key} must be a whole number")
    return value


def _placed(segments: list[_Segment], clocks: Mapping[tuple[str, str], HostClock]) -> list[_Segment]:
    """Return the segments with the times of measured hosts on the harness's clock, under the harness's boot."""
    harness = next((segment for segment in segments if segment.writer == HARNESS), None)
    if harness is None or not clocks:
        return segments
    placed = []
    for segment in segments:
        clock = clocks.get((segment.host, segment.boot))
        if segment.writer == HARNESS or clock is None:
            placed.append(segment)
        elif clock.same:
            placed.append(replace(segment, boot=harness.boot))
        else:
            name = clock_name(segment.host, segment.boot)
            events = [_on_harness_clock(event, clock, name) for event in segment.events]
            placed.append(replace(segment, boot=harness.boot, events=events))
    return placed


def clock_name(host: str, boot: str) -> str:
    """Return the name of the clock of a host's boot in events."""
    return f"{host}/{boot}"


def _clocks(segments: list[_Segment]) -> dict[tuple[str, str], HostClock]:
    """Return the clock of every host and boot that the harness has measured."""
    harness = [segment for segment in segments if segment.writer == HARNESS]
    measurements: dict[tuple[str, str], list[Offset]] = {}
    for event in (fact for segment in harness for fact in segment.events if fact.event == EVENT):
        match {"at": event.mono, **event.data}:
            case {"host": str(host), "boot": str(boot), "at": int(at), "offset": int(offset), "error": int(error)}:
                if max(abs(at), abs(offset), abs(error)) <= _LARGEST and error >= 0:
                    measurements.setdefault((host, boot), []).append(Offset(at, offset, error))
    return {key: HostClock(offsets, same_boot=key[1] == harness[0].boot) for key, offsets in measurements.items()}


def _on_harness_clock(event: Event, clock: HostClock, name: str) -> Event:
    placed = clock.place(event.mono)
    return replace(event, mono=placed.mono, clock=name, error=placed.error)


def _merge(segments: list[_Segment]) -> Iterator[Event]:
    filled = [segment for segment in segments if segment.events]
    boots: dict[str, int] = {}
    for segment in filled:
        began = segment.events[0].wall
        boots[segment.boot] = min(began, boots.get(segment.boot, began))
    keyed: list[tuple[tuple[int, str, int, int, int], Event]] = []
    for number, segment in enumerate(filled):
        latest = 0
        for position, event in enumerate(segment.events):
            # A clock that runs back is reported; it must not reverse the order of one writer's own events.
            latest = max(latest, event.mono)
            keyed.append(((boots[segment.boot], segment.boot, latest, number, position), event))
    for _, event in sorted(keyed, key=lambda pair: pair[0]):
        yield event
