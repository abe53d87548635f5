"""The losses of a log as columns: the same as MindFormersLogReader reads line by line, about fifty times as fast.

A run of a thousand ranks has ten million lines. They are read in pieces of bounded size, and most of them are
recognised together (:mod:`chaos.observe.logs.losses.line_template`); only a line of a new shape is read slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaos.base.plain_files import open_plain
from chaos.observe.logs.launcher_prefix import ESCAPE, WRAPPED, Unprefixed, strip_launcher
from chaos.observe.logs.lines import LINE_LIMIT
from chaos.observe.logs.losses.line_template import (
    OPENING,
    WIDEST,
    Bytes,
    Digits,
    Indices,
    Template,
    make_template,
    moments,
    shape_of,
)
from chaos.observe.logs.losses.training_line import BAR, MARK, TrainingLine, decimals, read_training_line, step_of_line
from chaos.observe.logs.records import TORN, is_repeated, split_records
from chaos.observe.logs.wall_time import WallTime

PIECE = 1 << 18
"""Bytes read at once. They stay in the processor's cache."""

NO_TIME = np.iinfo(np.int64).min
"""The value in column ``wall`` of a line without a time."""

FAR = 9_200_000_000_000_000_000
"""Nanoseconds that nearly fill 64 bits. A time at least as far from 1970 (290 years) is no time."""

_MOST_TEMPLATES = 256
_LINE_FEED = 10
_MARKS = (MARK.encode(), BAR.encode())
_HIDING = (ESCAPE.encode(), WRAPPED.encode())
"""Bytes that may hide a mark: a colour may stand within it, and JSON may spell it otherwise."""


@dataclass(frozen=True)
class LossColumns:
    """The losses of one log, in the order of its lines.

    ``line`` counts from 1. ``step`` counts over the whole job. ``loss`` is NaN on a rank that has none (``present``
    False) and where NaN was printed. ``places`` are the digits after its decimal point, -1 where it was not written
    out. ``wall`` is nanoseconds since the epoch, NO_TIME where the line has no time; the log's times are taken as UTC.
    ``others`` are lines, without their line feed, that are no training line and contain a requested text. ``lines``
    counts all lines, ``torn`` says that the file ends inside one.
    """

    line: NDArray[np.int64]
    step: NDArray[np.int64]
    loss: NDArray[np.float64]
    places: NDArray[np.int64]
    present: NDArray[np.bool_]
    wall: NDArray[np.int64]
    others: tuple[tuple[int, str], ...]
    lines: int
    torn: bool


@dataclass
class LossScanner:
    """Reads logs into columns. ``others`` are texts; lines that contain one of them are returned unchanged.
    Without ``times`` the column ``wall`` is left empty (NO_TIME), which saves a fifth of the time.

    One scanner serves many logs: templates learnt from one log speed up the next.
    """

    others: Sequence[str] = ()
    times: bool = True
    _templates: dict[bytes, Template] = field(default_factory=dict)
    _active: list[Template] = field(default_factory=list)

    def scan(self, path: Path) -> LossColumns:
        """Read one log. Raises OSError when it cannot be read."""
        collector = _Collector(tuple(text.encode() for text in self.others), times=self.times)
        buffer = np.empty(LINE_LIMIT + PIECE + WIDEST, np.uint8)
        window = memoryview(buffer.data)
        held = 0  # bytes of a line that has not ended yet, at the beginning of the buffer
        with open_plain(path) as stream:
            while count := stream.readinto(window[held : held + PIECE]):
                end = held + count
                if held == LINE_LIMIT:  # a line over the limit: what follows is thrown away, up to its end
                    feeds = np.flatnonzero(buffer[held:end] == _LINE_FEED)
                    if not len(feeds):
                        continue
                    end -= int(feeds[0])
                    buffer[held:end] = buffer[held + int(feeds[0]) : held + count].copy()
                feeds = np.flatnonzero(buffer[:end] == _LINE_FEED)
                starts = np.concatenate((np.zeros(1, np.int64), feeds + 1))
                if len(feeds):
                    self._read(collector, buffer, starts[:-1], feeds)
                held = min(end - int(starts[-1]), LINE_LIMIT)
                buffer[:held] = buffer[int(starts[-1]) : int(starts[-1]) + held].copy()
                collector.lines += len(feeds)
        return collector.columns(torn=held > 0)

    def _read(self, collector: _Collector, buffer: Bytes, starts: Indices, feeds: Indices) -> None:
        """Read whole lines: first those of the shapes of the piece before, then the rest one by one."""
        lines = _Lines(buffer, starts, _marks(buffer, feeds))
        left = np.arange(len(starts))
        active, self._active = self._active, []
        for template in active:
            left = self._take(collector, template, lines, left)
            if not len(left):
                return
        at = 0
        while at < len(left):
            index = int(left[at])
            at += 1
            line = bytes(buffer[starts[index] : min(feeds[index], starts[index] + LINE_LIMIT)]).removesuffix(b"\r")
            learnt = self._read_slowly(collector, index, line)
            if learnt is not None and learnt not in self._active:
                left, at = self._take(collector, learnt, lines, left[at:]), 0

    def _take(self, collector: _Collector, template: Template, lines: _Lines, left: Indices) -> Indices:
        """Record all lines of one shape; return the others.

        A line inside which another record begins has more braces or parentheses (of a step, and of MindSpore's prefix).
        """
        fit = lines.marks[left] == template.marks
        good, digits = template.match(lines.buffer, lines.starts[left[fit]])
        if not len(digits):
            return left
        self._active.append(template)
        fit[fit] = good
        return np.concatenate((left[~fit], collector.take(template, left[fit], digits)))

    def _read_slowly(self, collector: _Collector, index: int, line: bytes) -> Template | None:
        """Record one line. Return its template, so that other lines of its shape are not read slowly."""
        if any(mark in line for mark in _MARKS) or _HIDING[0] in line or line.startswith(_HIDING[1]):
            text = line.decode("utf-8", "replace")
            unprefixed = strip_launcher(text)
            if is_repeated(unprefixed.text):
                return None
            if unprefixed.text != text or len(split_records(text)) > 1:
                self._read_parts(collector, index, unprefixed)
                return None
            parts = read_training_line(text)
            if parts is not None and collector.add_line(index, text, parts):
                return self._template(line, text, parts)
        collector.other(index, line)
        return None

    def _read_parts(self, collector: _Collector, index: int, line: Unprefixed) -> None:
        """Record a line behind a launcher's prefix, or a line inside which a record may begin."""
        *torn, last = split_records(line.text.removesuffix("\r"))
        for text in (*(part + TORN for part in torn), last):
            parts = read_training_line(text)
            if parts is None or not collector.add_line(index, text, parts, line.wall_ns):
                collector.other(index, text.encode())

    def _template(self, line: bytes, text: str, parts: TrainingLine) -> Template | None:
        shape = shape_of(text[: parts.end].encode())
        if shape not in self._templates:
            template = make_template(line, text, parts)
            if template is None:
                return None
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            self._templates[shape] = template
        return self._templates[shape]


class _Lines(NamedTuple):
    """Lines of one piece: the bytes, the start of each line, and the number of its braces and parentheses that open."""

    buffer: Bytes
    starts: Indices
    marks: Indices


def _marks(buffer: Bytes, feeds: Indices) -> Indices:
    content = buffer[: feeds[-1]]
    line = np.searchsorted(feeds, np.flatnonzero((content == OPENING[0]) | (content == OPENING[1])))
    return np.bincount(line, minlength=len(feeds))


class _Rows(NamedTuple):
    """Lines that were recorded together."""

    line: Indices
    step: Indices
    loss: NDArray[np.float64]
    places: int
    present: bool
    wall: Indices


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), -1, False, np.empty(0, np.int64))


class _Collector:
    """The lines of one log recorded so far. ``lines`` counts those of the pieces before."""

    def __init__(self, texts: tuple[bytes, ...], *, times: bool) -> None:
        self.lines = 0
        self._texts = texts
        self._times = times
        self._others: list[tuple[int, str]] = []
        self._clock = WallTime(timezone.utc)
        self._days: dict[int, int] = {}
        self._rows: list[_Rows] = []

    def take(self, template: Template, indices: Indices, digits: Digits) -> Indices:
        """Record lines of one shape. Return the lines that count from nothing, which no training does."""
        values = template.values(digits)
        if values is None:
            return indices[:0]
        good = values.step > 0
        wall = self._walls(digits, template.parts.time)
        present = template.parts.loss is not None
        line = indices + self.lines + 1
        if good.all():
            self._rows.append(_Rows(line, values.step, values.loss, values.places, present, wall))
            return indices[:0]
        rows = _Rows(line[good], values.step[good], values.loss[good], values.places, present, wall[good])
        self._rows.append(rows)
        return indices[~good]

    def add_line(self, index: int, text: str, parts: TrainingLine, else_wall: int | None = None) -> bool:
        """Record a slowly read line, with the time ``else_wall`` if it has none. False if it is no training line."""
        if parts.step is None:
            return True
        step = step_of_line(text, parts)
        if step is None:
            return False
        loss = None if parts.loss is None else text[slice(*parts.loss)]
        value, places = (np.nan, -1) if loss is None else (float(loss), decimals(loss))
        wall = self._wall_of(text, parts.time, else_wall)
        line, steps, walls = (np.array([number], np.int64) for number in (self.lines + index + 1, step, wall))
        self._rows.append(_Rows(line, steps, np.array([value]), places, loss is not None, walls))
        return True

    def other(self, index: int, line: bytes) -> None:
        """Record a line that is no training line, if it was asked for."""
        if any(text in line for text in self._texts):
            self._others.append((self.lines + index + 1, line.decode("utf-8", "replace")))

    def columns(self, *, torn: bool) -> LossColumns:
        """Return everything, in the order of the lines."""
        rows = self._rows or [_Rows(*_NOTHING)]
        counts = [len(row.line) for row in rows]
        line = np.concatenate([row.line for row in rows])
        order = np.argsort(line, kind="stable") if np.any(np.diff(line) < 0) else slice(None)
        self._others.sort()
        return LossColumns(
            line[order],
            np.concatenate([row.step for row in rows])[order],
            np.concatenate([row.loss for row in rows])[order],
            np.repeat([row.places for row in rows], counts)[order],
            np.repeat([row.present for row in rows], counts)[order],
            np.concatenate([row.wall for row in rows])[order],
            tuple(self._others),
            self.lines,
            torn,
        )

    def _walls(self, digits: Digits, at: int | None) -> Indices:
        if at is None or not self._times:
            return np.full(len(digits), NO_TIME)
        date, seconds, millis = moments(digits, at)
        days, which = np.unique(date, return_inverse=True)
        began = np.array([self._day(day) for day in days.tolist()])[which]
        wall = began + seconds * 1_000_000_000 + millis * 1_000_000
        return np.where((began == NO_TIME) | (seconds < 0) | (np.abs(wall) >= FAR), NO_TIME, wall)

    def _day(self, date: int) -> int:
        """Return the time at which the day ``20261121`` begins."""
        if date not in self._days:
            text = f"{date:08d}"
            began = self._clock.ns(f"{text[:4]}-{text[4:6]}-{text[6:]}", "00:00:00", 0)
            self._days[date] = NO_TIME if began is None or abs(began) > FAR else began
        return self._days[date]

    def _wall_of(self, text: str, at: int | None, else_wall: int | None) -> int:
        if not self._times:
            return NO_TIME
        wall = else_wall
        if at is not None:
            milli = int(text[at + 20 : at + 23])
            timed = self._clock.ns(text[at : at + 10], text[at + 11 : at + 19], milli * 1000)
            wall = else_wall if timed is None else timed
        return NO_TIME if wall is None or abs(wall) >= FAR else wall
