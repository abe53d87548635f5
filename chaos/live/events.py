"""The new events of a run's history, each read once, on the harness's clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path

from chaos.evidence.text import readable
from chaos.history.event import Event
from chaos.history.host_clock import EVENT, HostClock, Offset
from chaos.history.reader import HARNESS, parse_event
from chaos.history.tail import TailedFile

_OWN = f"{HARNESS}.jsonl"
_OPENING = ("writer.start", "writer.resume")
_FRAME = 160
"""Bytes of a line that hold the name of its event."""
_PASSED_OVER = b'"event":"initial"'
"""The digests of all parameters before the first step."""
_HEAD = re.compile(
    rb'^\{"seq":(\d{1,18}),"mono":(\d{1,18}),"wall":(\d{1,18}),"event":"digest","attempt":"(\w{1,40})","rank":(\d{1,9}),'
    rb'"pid":(\d{1,9}),"cost_us":[\d.e+-]+,"step":(\d{1,15}),"loss":"([^"\\]{1,60})"'
)
"""The beginning of a digest as the agent writes it. The digests of all parameters follow, which nobody shows."""
_MOST_PROBLEMS = 20


@dataclass
class _File:
    """A file of the history, read up to a place. ``key`` names the boot of the host that writes it."""

    tail: TailedFile
    writer: str
    where: str
    key: tuple[str, str] = ("", "")


class NewEvents:
    """The events of all files of a history, as they are written.

    A file is opened anew for every look, so a thousand ranks need no thousand descriptors. A line that is no event is a
    problem, and is passed over.
    """

    def __init__(self, history: Path, *, only: str = "") -> None:
        """Take the directory; ``only`` the files whose names begin with this are read."""
        self.problems: dict[str, None] = {}
        self._history = history
        self._only = only
        self._files: dict[str, _File] = {}
        self._clocks: dict[tuple[str, str], list[Offset]] = {}
        self._made: dict[tuple[str, str], HostClock] = {}
        self._boot = ""

    def read(self) -> Iterator[Event]:
        """Yield the events since the last call in order of time, those of each writer in its order.

        Of a long history, begun late, a part of each file is in memory, and not all events.
        """
        try:
            if self._history.is_symlink():
                return
            names = sorted(path.name for path in self._history.iterdir() if path.suffix == ".jsonl")
        except OSError:
            return
        for name in names:
            if name.startswith(self._only) and name not in self._files:
                tail = TailedFile(self._history / name, mapped=True, plain=True)
                self._files[name] = _File(tail, Path(name).stem, f"{self._history.name}/{name}")
        # The harness's own first: it has measured the clocks of the others.
        own = [*self._of(self._files[_OWN])] if _OWN in self._files else []
        others = [self._of(file) for name, file in self._files.items() if name != _OWN]
        yield from merge(own, *others, key=lambda event: event.mono)

    def _of(self, file: _File) -> Iterator[Event]:
        try:
            while lines := list(file.tail.new_lines()):
                for line in lines:
                    if (event := self._event(line, file)) is not None:
                        yield self._placed(event, file)
        except OSError as error:
            self._problem(f"{file.where}: {error.strerror}")

    def _event(self, line: bytes, file: _File) -> Event | None:
        """Return the event of a line; None for one that is no event, or that nobody shows."""
        if _PASSED_OVER in line[:_FRAME]:
            return None
        try:
            return _digest(line, file.writer) or _short(parse_event(line, file.writer, file.where))
        except ValueError as error:
            self._problem(f"{file.where}: not an event: {error}")
            return None

    def _placed(self, event: Event, file: _File) -> Event:
        data = event.data
        if event.event in _OPENING:
            file.writer = str(data.get("writer", file.writer))
            file.key = (str(data.get("host", "")), str(data.get("boot", "")))
            event = replace(event, writer=file.writer)
            if file.writer == HARNESS:
                self._boot = file.key[1]
        if event.event == EVENT and event.writer == HARNESS:
            self._measure(event)
        if event.writer == HARNESS or file.key[1] == self._boot or file.key not in self._clocks:
            return event
        if file.key not in self._made:
            self._made[file.key] = HostClock(self._clocks[file.key])
        return replace(event, mono=self._made[file.key].place(event.mono).mono)

    def _measure(self, event: Event) -> None:
        match {"at": event.mono, **event.data}:
            case {"host": str(host), "boot": str(boot), "at": int(at), "offset": int(offset), "error": int(error)}:
                if error >= 0:
                    self._clocks.setdefault((host, boot), []).append(Offset(at, offset, error))
                    self._made.pop((host, boot), None)

    def _problem(self, text: str) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems[readable(text)] = None


def _digest(line: bytes, writer: str) -> Event | None:
    """Return a digest with its step and its loss alone; None for any other line."""
    match = _HEAD.match(line)
    if match is None:
        return None
    seq, mono, wall, attempt, rank, pid, step, loss = match.groups()
    data = {"step": int(step), "loss": loss.decode("ascii", "replace")}
    who = (attempt.decode("ascii", "replace"), int(rank), int(pid))
    return Event("digest", int(mono), int(wall), writer, int(seq), *who, data)


def _short(event: Event) -> Event:
    if event.event != "digest":
        return event
    return replace(event, data={name: event.data[name] for name in ("step", "loss") if name in event.data})
