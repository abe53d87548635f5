"""Loop devices (loop(4)): a file as a disk. The kernel releases the device on unmounting."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path

CONTROL = Path("/dev/loop-control")

_GET_FREE = 0x4C82
_CONFIGURE = 0x4C0A
_GET_STATUS = 0x4C05
_STATUS_SIZE = 232
"""The beginning of ``struct loop_info64`` (linux/loop.h): device and inode of the file behind the device."""
_AUTOCLEAR = 4
_FLAGS_AT = 8 + 5 * 8 + 3 * 4
_CONFIG_SIZE = 304
_TRIES = 64


def attach(image: Path) -> tuple[Path, int]:
    """Return a device for the file, and a descriptor of it that must stay open until it is mounted. Raises OSError."""
    backing = os.open(image, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):  # another process may take the free device first
            device = Path(f"/dev/loop{_free()}")
            descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(descriptor, _CONFIGURE, _configuration(backing))
            except OSError as error:
                os.close(descriptor)
                if error.errno != errno.EBUSY:
                    raise
            else:
                return device, descriptor
    finally:
        os.close(backing)
    raise OSError(errno.EBUSY, f"no loop device was free in {_TRIES} tries")


def is_backed_by(device: Path, image: Path) -> bool:
    """Return whether the device reads and writes that very file, by the kernel's record.

    False where either cannot be read.
    """
    try:
        backing = image.lstat()
        descriptor = os.open(device, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = fcntl.ioctl(descriptor, _GET_STATUS, bytes(_STATUS_SIZE))
    except OSError:  # another disk, or a loop device without a file
        return False
    finally:
        os.close(descriptor)
    return struct.unpack_from("=QQ", status) == (backing.st_dev, backing.st_ino)


def _free() -> int:
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        return int(fcntl.ioctl(control, _GET_FREE))
    finally:
        os.close(control)


def _configuration(backing: int) -> bytes:
    """Return ``struct loop_config`` (linux/loop.h): descriptor, block size, and of the rest the flags only."""
    content = bytearray(_CONFIG_SIZE)
    struct.pack_into("=II", content, 0, backing, 0)
    struct.pack_into("=I", content, _FLAGS_AT, _AUTOCLEAR)
    return bytes(content)
