"""A file system of its own in a file, which the kernel can make fail as a broken disk does (loop(4), ext4).

Needs root, the loop driver and ``mkfs.ext4`` (e2fsprogs). ``FIFREEZE`` stops it, as fsfreeze(8) does.
``EXT4_IOC_SHUTDOWN`` breaks it, as tests of file systems do to remove the disk beneath one (xfstests, godown).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos.machine.linux.commands import Commands
from chaos.machine.linux.loop import attach
from chaos.machine.linux.mounts import mount_device, mounts_at

FIFREEZE = 0xC0045877
FITHAW = 0xC0045878
SHUT_DOWN = 0x8004587D
_FLUSH_FIRST = struct.pack("I", 0)
"""Earlier writes are on the disk; later writes fail."""

_LOOP = "/dev/loop"

_OPTIONS = ("-q", "-F", "-m", "0", "-J", "size=4", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard")


def make_image(image: Path, size: int, commands: Commands) -> None:
    """Make an empty file system of at most ``size`` bytes in a new file, which grows with the writes to it.

    Raises FileExistsError, OSError, CommandError.
    """
    with image.open("xb") as file:
        file.truncate(size)
    commands("mkfs.ext4", *_OPTIONS, str(image)).checked()


def mount_image(image: Path, point: Path) -> None:
    """Mount the file system; the kernel releases its loop device on unmounting. Raises OSError."""
    device, descriptor = attach(image)
    try:
        mount_device(device, point, "ext4")
    finally:
        os.close(descriptor)
    with suppress(OSError):  # fsck puts recovered files there; a job must not mistake it for a directory of its own
        (point / "lost+found").rmdir()


def shut_down(point: Path) -> None:
    """Let every access to the file system fail with EIO from now on, until it is mounted anew. Raises OSError."""
    with _directory(point) as descriptor:
        fcntl.ioctl(descriptor, SHUT_DOWN, _FLUSH_FIRST)


def freeze(point: Path) -> bool:
    """Block every write to the file system. Returns False when writes are blocked already. Raises OSError."""
    with _directory(point) as descriptor:
        try:
            fcntl.ioctl(descriptor, FIFREEZE, 0)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
            raise
    return True


def thaw(point: Path) -> bool:
    """Unblock all writes. Returns False when none was blocked. Raises OSError."""
    with _directory(point) as descriptor:
        try:
            fcntl.ioctl(descriptor, FITHAW, 0)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY):
                return False
            raise
    return True


def flush(point: Path) -> None:
    """Write all of the file system's data in memory to the disk (syncfs(2)). Raises OSError where it is broken."""
    libc = ctypes.CDLL(None, use_errno=True)
    with _directory(point) as descriptor:
        if libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"syncfs: {os.strerror(code)}")


def is_frozen(point: Path) -> bool:
    """Return whether the file system is frozen: the kernel refuses to freeze it a second time. Raises OSError."""
    if not freeze(point):
        return True
    thaw(point)
    return False


@contextmanager
def _directory(path: Path) -> Iterator[int]:
    """Yield a descriptor of a directory on such a file system.

    Raises OSError for any other file system: it is the machine's.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Where nothing is mounted any more, the path leads to the file system that the whole machine may live on.
        mounts = mounts_at(path)
        device = mounts[-1].source if mounts else ""
        if not device.startswith(_LOOP) or os.stat(device).st_rdev != os.fstat(descriptor).st_dev:  # noqa: PTH116
            raise OSError(errno.ENOTBLK, f"{path} is on no disk of the run's own; it was left alone")
        yield descriptor
    finally:
        os.close(descriptor)
