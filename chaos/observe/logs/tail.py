"""The events of a log that is being written: first of the existing content, then of each addition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from chaos.observe.logs.lines import LineSplitter
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.reader import choose_reader, in_order, read_line

BACK = 256 << 10
"""Bytes read at the end of a log when its following begins: enough for the last steps of any rank."""

_CHUNK = 1 << 20
_HEAD = 64 << 10
_HEAD_LINES = 50


class LogTail:
    """One log, held open: it is followed to its end even if it is renamed or removed.

    A log that is emptied and begun again, as by a restarted rank, is read from its beginning.
    ``name`` is what the events give as their file, ``unknown`` counts the lines read so far that no reader knows, blank
    ones not included.
    """

    def __init__(self, stream: BinaryIO, readers: Sequence[LogReader], *, name: str, back: int = BACK) -> None:
        self.name = name
        self.unknown = 0
        self._stream = stream
        self._all = readers
        self._readers = in_order(None, readers)
        self._chosen = False
        size = stream.seek(0, 2)
        self._offset = max(0, size - back)
        self._inside = self._offset > 0  # the first line is the end of one
        self._splitter = LineSplitter()

    def new_events(self) -> Iterator[LogEvent]:
        """Yield the events added since the last call; the first call yields those at the end of the present content."""
        if self._stream.seek(0, 2) < self._offset:
            self._offset, self._inside, self._splitter = 0, False, LineSplitter()
        self._choose()
        while True:
            self._stream.seek(self._offset)
            chunk = self._stream.read(_CHUNK)
            if not chunk:
                return
            self._offset += len(chunk)
            for line in self._splitter.feed(chunk):
                if self._inside:
                    self._inside = False
                    continue
                known = read_line(self._readers, line)
                self.unknown += not known and bool(line.strip())
                for event, _ in known:
                    yield replace(event, file=self.name)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _choose(self) -> None:
        """Choose the reader that recognises the content, as soon as there is some."""
        if self._chosen:
            return
        self._stream.seek(0)
        first = choose_reader(LineSplitter().feed(self._stream.read(_HEAD))[:_HEAD_LINES], self._all)
        if first is not None:
            self._readers = in_order(first, self._all)
            self._chosen = True
