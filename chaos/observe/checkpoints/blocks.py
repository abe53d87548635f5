"""Read a file in blocks, so that memory does not grow with the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 4 << 20
"""Bytes held in memory at once."""


class Span(NamedTuple):
    """A part of a file."""

    at: int
    length: int

    @property
    def end(self) -> int:
        """The offset behind the part."""
        return self.at + self.length


class BlockReader:
    """Reads a stream in blocks into one buffer. Each block reuses the buffer."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._buffer = memoryview(b"")

    def read(self, span: Span) -> Iterator[memoryview]:
        """Yield the content of a part of the file in whole blocks; the last may be shorter.

        A block is valid only until the next is asked for.

        Raises EOFError where the file ends before that.
        """
        at, count = span.at, span.length
        size = min(count, BLOCK)
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size))
        while count:
            # Somebody else may have read from the stream while the last block was looked at.
            self._stream.seek(at)
            size = min(count, BLOCK)
            if self._stream.readinto(self._buffer[:size]) < size:
                raise EOFError("the file got shorter while it was read")
            yield self._buffer[:size].toreadonly()
            at, count = at + size, count - size
