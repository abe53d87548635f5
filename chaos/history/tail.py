"""New whole lines of one file that grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from chaos.base.plain_files import UnreadableFile, open_plain

_CHUNK = 1 << 20
_WRITTEN = 1 << 13
"""Bytes of a file in memory that are read at first: most of it is not written yet."""


class TailedFile:
    """New whole lines of one growing file.

    With ``mapped``, NUL bytes end the written part (see the agent's record); else they are ordinary bytes. Another file
    under its name (a log of a rank that was started again) is read from its beginning. With ``plain`` anything but a
    plain file raises UnreadableFile.
    """

    def __init__(self, path: Path, *, mapped: bool = False, plain: bool = False) -> None:
        self._path = path
        self._mapped = mapped
        self._plain = plain
        self._offset = 0
        self._inode: int | None = None

    def new_lines(self) -> Iterator[bytes]:
        """Yield the lines completed since the last call."""
        try:
            with open_plain(self._path) if self._plain else self._path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._offset = inode, 0
                file.seek(self._offset)
                written = _written(file) if self._mapped else file.read(_CHUNK)
        except FileNotFoundError:
            return
        except UnreadableFile as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return
            raise
        end = written.rfind(b"\n") + 1
        if end == 0 and len(written) == _CHUNK:
            end = _CHUNK  # a line longer than a chunk: passed on in pieces, so that memory stays bounded
        self._offset += end
        yield from written[:end].splitlines()


def _written(file: BinaryIO) -> bytes:
    """Return the written part of a mapped file from its position, up to a chunk."""
    content, size = bytearray(), _WRITTEN
    while len(content) < _CHUNK and (data := file.read(min(size, _CHUNK - len(content)))):
        before, end, _ = data.partition(b"\0")
        content += before
        if end:
            break
        size *= 4
    return bytes(content)
