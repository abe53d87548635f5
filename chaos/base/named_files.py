"""Reading a file that the user names on the command line, also through a link, a pipe or standard input.

The user of a command may read any file that the command names. A file below a directory was put there by somebody else,
and is read by :mod:`chaos.base.plain_files`. A pipe gives its bytes once and has no size, so a document from a pipe is
kept, and a silent pipe is given up.
"""

from __future__ import annotations

import io
import os
import select
import stat
from pathlib import Path

from chaos.base.plain_files import UnreadableFile

STANDARD_INPUT = Path("-")

DOCUMENT_SECONDS = 60.0
"""Seconds for which a pipe with a document may be silent: its writer may have to ask a cluster."""

LOG_SECONDS = 600.0
"""Seconds for which a pipe with a log may be silent: a program that is followed may write nothing for minutes."""

_DESCRIPTORS = (Path("/dev/fd"), Path("/proc/self/fd"))
_pipes: dict[Path, bytes] = {}


def is_pipe(path: Path) -> bool:
    """Return whether the path is standard input, a pipe, or a descriptor of this process by its name. Never raises."""
    if path == STANDARD_INPUT or path in _pipes or _is_descriptor(path):
        return True
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def open_named(path: Path, seconds: float | None = None) -> io.BufferedReader:
    """Open a file that the user has named: links are followed, ``-`` is standard input.

    Reading a pipe that is silent for ``seconds`` raises UnreadableFile, and so does opening a source that never ends.
    The default is the limit of a log.
    """
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.dup(0) if path == STANDARD_INPUT else os.open(path, flags)
    except (OSError, ValueError) as error:
        raise UnreadableFile(path, _why(path, error)) from error
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISREG(kind):
            return os.fdopen(descriptor, "rb")
        if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
            raise UnreadableFile(path, f"is {_kind_name(kind)}, and no file or pipe")
        return io.BufferedReader(_Pipe(path, descriptor, LOG_SECONDS if seconds is None else seconds))
    except BaseException:
        os.close(descriptor)
        raise


def keep_piped(path: Path, most: int) -> Path:
    """Read a pipe, up to one byte more than ``most``, and keep the bytes for :func:`read_piped`.

    Returns the name by which the content is known from here on. A path without a directory of its own, such as
    ``/dev/fd/63``, belongs to the current directory, and so do the files that the document names. Raises
    UnreadableFile.
    """
    if path in _pipes:
        return path
    with open_named(path, DOCUMENT_SECONDS) as stream:
        content = stream.read(most + 1)
    name = Path(f"pipe-{path.name}") if _is_descriptor(path) else path
    _pipes[path] = _pipes[name] = content
    return name


def read_piped(path: Path, most: int) -> bytes:
    """Return the bytes of a pipe, at the first call and at every later one. Raises UnreadableFile."""
    return _pipes[keep_piped(path, most)][: most + 1]


class _Pipe(io.RawIOBase):
    """A pipe whose every read waits for a limited time."""

    def __init__(self, path: Path, descriptor: int, seconds: float) -> None:
        super().__init__()
        self._path, self._descriptor, self._seconds = path, descriptor, seconds
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN | select.POLLHUP)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._poll.poll(self._seconds * 1000):
            raise UnreadableFile(self._path, f"says nothing for {self._seconds:g} s, and has not ended")
        return os.readv(self._descriptor, [buffer])

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def _is_descriptor(path: Path) -> bool:
    return path == Path("/dev/stdin") or path.parent in _DESCRIPTORS


def _kind_name(kind: int) -> str:
    if stat.S_ISDIR(kind):
        return "a directory"
    return "a terminal or a device" if stat.S_ISCHR(kind) else "a device"


def _why(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "is not a usable file name"
    if path == STANDARD_INPUT:
        return f"standard input cannot be read: {error.strerror}"
    return f"cannot be read: {error.strerror}"
