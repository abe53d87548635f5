"""The bytes of a ``.ckpt``: peeked at anywhere, passed once in their order, with the CRC of the passed bytes."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from chaos.observe.checkpoints.blocks import BlockReader, Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError

_MAX_VARINT = 10
_PAGE = 512  # what is looked at comes in a few bytes each, side by side; the content in between is not looked at


class CkptSource:
    """Bytes up to ``end``. ``at`` is the offset passed so far; ``crc`` covers the passed bytes if ``summed``.

    Raises CheckpointError if the file has become shorter.
    """

    def __init__(self, path: Path, stream: io.BufferedReader, end: int, *, summed: bool) -> None:
        self.path, self.end = path, end
        self.at = 0
        self.crc = 0
        self._summed = summed
        self._stream = stream
        self._blocks = BlockReader(stream)
        self._page, self._page_at = b"", 0

    def peek(self, at: int, count: int) -> bytes:
        """Return bytes from an offset on, without passing them."""
        begin = at - self._page_at
        if begin < 0 or begin + count > len(self._page):
            self._stream.seek(at)
            self._page, self._page_at, begin = self._stream.read(max(count, _PAGE)), at, 0
            if len(self._page) < count:
                raise CheckpointError(self.path, "the file got shorter while it was read", at)
        return self._page[begin : begin + count]

    def take(self, count: int) -> bytes:
        """Pass bytes, and return them."""
        data = self.peek(self.at, count)
        if self._summed:
            self.crc = zlib.crc32(data, self.crc)
        self.at += count
        return data

    def blocks(self, end: int) -> Iterator[memoryview]:
        """Pass everything up to an offset, block by block. A block is valid until the next is asked for."""
        try:
            for block in self._blocks.read(Span(self.at, end - self.at)):
                if self._summed:
                    self.crc = zlib.crc32(block, self.crc)
                self.at += len(block)
                yield block
        except EOFError as error:
            raise CheckpointError(self.path, str(error), self.at) from error

    def skip(self, end: int) -> None:
        """Pass everything up to an offset. The bytes are read only if they are summed."""
        if self._summed and end > self.at:
            for _ in self.blocks(end):
                pass
        self.at = end

    def varint(self) -> int:
        """Pass the length of a record, and return it."""
        start, value = self.at, 0
        for index in range(_MAX_VARINT):
            if self.at >= self.end:
                raise CheckpointError(self.path, "the file ends inside the length of a record: truncated", start)
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if byte == 0 and index:
                    break
                return value
        raise CheckpointError(self.path, "the length of a record is not a protobuf number", start)
