"""Reading files that somebody else has made: plain files only, and no more of them than fits.

A FIFO would block for ever, a device never ends, and a link may lead out of the run.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_JSON = 64 << 20
"""Bytes of a JSON document that is read whole. The plan of 16,384 ranks takes a few MiB."""


class UnreadableFile(OSError):
    """The file is not a plain file that can be read. ``strerror`` has the reason; the text names the file too."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EINVAL, why, str(path))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class TooMuch(Exception):
    """The reading has reached its limit. This is no error of a file: the unread part proves nothing."""


@dataclass
class Share:
    """The total amount that may be read, which bounds the time: bytes, bytes in holes of files, and opened files.

    A hole takes no room on the disk and nearly none in an archive, and as much time as any other bytes.
    """

    most_bytes: int = 32 << 30
    most_holes: int = 1 << 30
    most_files: int = 500_000
    bytes: int = 0
    holes: int = 0
    files: int = 0

    def open(self) -> None:
        """Count a file. Raises TooMuch."""
        self.files += 1
        if self.files > self.most_files:
            raise TooMuch(f"more than {self.most_files:,} files would be opened")

    def take(self, count: int, holes: int) -> None:
        """Count bytes that were read. Raises TooMuch."""
        self.bytes += count
        self.holes += holes
        if self.bytes > self.most_bytes:
            raise TooMuch(f"more than {self.most_bytes >> 30} GiB were to be read in all")
        if self.holes > self.most_holes:
            raise TooMuch(f"more than {self.most_holes >> 30} GiB would be read from files that are mostly holes")


_SHARE: ContextVar[Share | None] = ContextVar("share", default=None)


@contextmanager
def reading_at_most(share: Share | None) -> Iterator[None]:
    """Limit the reading of all files opened meanwhile to ``share``; None: no limit."""
    token = _SHARE.set(share)
    try:
        yield
    finally:
        _SHARE.reset(token)


def open_plain(path: Path) -> io.BufferedReader:
    """Open a plain file for reading. Raises UnreadableFile for anything else, a link to a plain file included.

    Anything else is not even opened: opening alone may have an effect, where the path is a device.
    """
    try:
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode) and not stat.S_ISDIR(mode):
            raise UnreadableFile(path, "is not a plain file")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except UnreadableFile:
        raise
    except (OSError, ValueError) as error:
        raise UnreadableFile(path, _why(path, error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile(path, "is not a plain file")
        share = _SHARE.get()
        if share is None:
            return os.fdopen(descriptor, "rb")
        share.open()
        return io.BufferedReader(_Shared(descriptor, share, status), max(io.DEFAULT_BUFFER_SIZE, status.st_blksize))
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: Path, limit: int = MAX_JSON) -> bytes:
    """Return the content of a plain file of at most ``limit`` bytes. Raises UnreadableFile."""
    with open_plain(path) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise UnreadableFile(path, f"cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise UnreadableFile(path, f"is larger than {limit:,} bytes, the limit for such a file")
    return content


class _Shared(io.FileIO):
    """A file whose bytes count towards a share."""

    def __init__(self, descriptor: int, share: Share, status: os.stat_result) -> None:
        super().__init__(descriptor, "rb")
        self._share = share
        allocated = status.st_blocks * 512
        self._hollow = 1 - allocated / status.st_size if 2 * allocated < status.st_size else 0.0

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        count = super().readinto(buffer)
        self._count(count or 0)
        return count

    def readall(self) -> bytes:
        content = super().readall()
        self._count(len(content))
        return content

    def _count(self, count: int) -> None:
        self._share.take(count, int(count * self._hollow))


def _why(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "is not a usable file name"
    if error.errno == errno.ELOOP and os.path.islink(path):  # noqa: PTH114 - never raises
        return "cannot be read: it is a link, and links are not followed"
    if error.errno == errno.ENXIO:
        return "is not a plain file"
    return f"cannot be read: {error.strerror}"
