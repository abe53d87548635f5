"""Reading files that somebody else has made: plain files only, and no more of them than fits.

A FIFO would block for ever, a device never ends, and a link may lead out of the run.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

MAX_JSON = 64 << 20
"""Bytes of a JSON document that is read whole. The plan of 16,384 ranks takes a few."""


class UnreadableFile(OSError):
    """The file is not a plain file that can be read. ``strerror`` says why, the text names the file too."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(errno.EINVAL, why, str(path))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def open_plain(path: Path) -> io.BufferedReader:
    """Open a plain file for reading. Raises UnreadableFile for anything else, a link to a plain file included.

    Anything else is not even opened: that alone may do something, where it is a device.
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
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFile(path, "is not a plain file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: Path, limit: int = MAX_JSON) -> bytes:
    """The content of a plain file of at most ``limit`` bytes. Raises UnreadableFile."""
    with open_plain(path) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise UnreadableFile(path, f"cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise UnreadableFile(path, f"is larger than {limit:,} bytes, the limit for such a file")
    return content


def _why(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "is not a usable file name"
    if error.errno == errno.ELOOP and os.path.islink(path):  # noqa: PTH114 - never raises
        return "cannot be read: it is a link, and links are not followed"
    if error.errno == errno.ENXIO:
        return "is not a plain file"
    return f"cannot be read: {error.strerror}"
