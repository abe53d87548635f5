"""The right to write: capabilities of a process (proc(5)), and immutable directories (ioctl_iflags(2))."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from chaos.base.walking import Unseen, walk
from chaos.machine.linux.procfs import PROC, lines_of

CAP_DAC_OVERRIDE = 1
"""With it a process bypasses file modes (capabilities(7))."""

CAP_LINUX_IMMUTABLE = 9
"""With it a process may make a directory immutable."""

_GET_FLAGS = 0x80086601
_SET_FLAGS = 0x40086602
_IMMUTABLE = 0x10


def has_capability(pid: int | str, capability: int, proc_root: Path = PROC) -> bool:
    """Return whether a process has the capability in effect. Raises OSError when it has gone."""
    for line in lines_of(proc_root / str(pid) / "status"):
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def directories_in(top: Path, onerror: Unseen = None) -> Iterator[Path]:
    """Yield a directory and all directories below it, from top to bottom; no link is followed.

    ``onerror`` works as in ``walking.walk``.
    """
    for path, _, _ in walk(top, onerror):
        yield Path(path)


def is_immutable(path: Path) -> bool:
    """Return whether the directory is immutable: nothing can be created or removed in it.

    Raises OSError where its file system cannot say.
    """
    descriptor = _open(path)
    try:
        return bool(_flags(descriptor) & _IMMUTABLE)
    finally:
        os.close(descriptor)


def set_immutable(path: Path, immutable: bool) -> None:
    """Make that directory immutable, or mutable again. Raises OSError."""
    descriptor = _open(path)
    try:
        flags = _flags(descriptor)
        changed = flags | _IMMUTABLE if immutable else flags & ~_IMMUTABLE
        if changed != flags:
            fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", changed))
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _flags(descriptor: int) -> int:
    return int(struct.unpack("l", fcntl.ioctl(descriptor, _GET_FLAGS, struct.pack("l", 0)))[0])
