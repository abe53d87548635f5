"""Mounts of this host: the means of storage faults, and the kernel's list of mounts (mount(2), proc(5))."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.linux.permissions import has_capability
from chaos.machine.linux.procfs import PROC, lines_of

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_REMOUNT = 32
MS_BIND = 4096
MNT_DETACH = 2

CAP_SYS_ADMIN = 21
"""The capability that mounting needs (capabilities(7))."""

REMOVED = ".{}.removed"
"""Name of the removed directory that is mounted over another one; ``heal`` knows it (chaos.heal.interrupted_acts)."""

_ESCAPED = re.compile(r"\\([0-7]{3})")
_LEAST_FIELDS = 6


@dataclass(frozen=True)
class Mount:
    """One line of a process's mountinfo. ``options`` are the mount's own, ``super_options`` the file system's.

    ``root`` is the directory of the file system that is mounted there.
    """

    point: str
    options: tuple[str, ...]
    type: str
    source: str
    super_options: tuple[str, ...]
    root: str = "/"

    @property
    def removed(self) -> bool:
        """Whether the directory that is mounted has been removed meanwhile."""
        return self.root.endswith("//deleted")

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written through this mount."""
        return "ro" in self.options or "ro" in self.super_options

    def __str__(self) -> str:
        return f"{self.type} {','.join(self.options)} ({','.join(self.super_options)})"


def mounts_at(point: Path, pid: int | str = "self", proc_root: Path = PROC) -> list[Mount]:
    """Return the mounts exactly at ``point`` as process ``pid`` sees them, the topmost last.

    Raises OSError when the process has gone.
    """
    return [mount for mount in all_mounts(pid, proc_root) if mount.point == str(point)]


def mounts_in(directory: Path, proc_root: Path = PROC) -> list[Mount]:
    """Return the mounts below ``directory`` (absolute, without links), in the order of mounting."""
    return [mount for mount in all_mounts("self", proc_root) if directory in Path(mount.point).parents]


def all_mounts(pid: int | str = "self", proc_root: Path = PROC) -> list[Mount]:
    """Return all mounts that process ``pid`` sees, in the order of mounting. Raises OSError when it has gone."""
    lines = lines_of(proc_root / str(pid) / "mountinfo")
    return [mount for mount in map(_parse, lines) if mount is not None]


def mount_memory(point: Path, source: str, size: int) -> None:
    """Mount an empty file system in memory, of at most ``size`` bytes. Raises OSError."""
    _mount(source, point, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=0755")


def resize_memory(point: Path, size: int) -> None:
    """Give a mounted file system another size. Raises OSError, also when it holds more than that."""
    _mount(None, point, None, MS_REMOUNT | MS_NOSUID | MS_NODEV, f"size={size}")


def mount_read_only(point: Path) -> None:
    """Mount a directory on itself so that no user, root included, can write in it by its path. Raises OSError."""
    _mount(str(point), point, None, MS_BIND, None)
    _mount(None, point, None, MS_BIND | MS_REMOUNT | MS_RDONLY, None)


def mount_device(device: Path, point: Path, kind: str) -> None:
    """Mount the file system of a device. Raises OSError."""
    _mount(str(device), point, kind, MS_NOSUID | MS_NODEV, None)


def mount_itself(point: Path) -> None:
    """Mount a directory on itself, so that a watch of it covers this mount only. Raises OSError."""
    _mount(str(point), point, None, MS_BIND, None)


def mount_removed(point: Path) -> None:
    """Mount a removed directory: it is empty, and nothing can be created in it. Raises OSError."""
    empty = point.with_name(REMOVED.format(point.name))
    empty.mkdir(exist_ok=True)
    try:
        _mount(str(empty), point, None, MS_BIND, None)
    finally:
        empty.rmdir()


def unmount(point: Path) -> None:
    """Remove the topmost mount; open files on it stay open. Raises OSError, EINVAL when there is none."""
    _call("umount2", os.fsencode(point), MNT_DETACH)


def may_mount(proc_root: Path = PROC) -> bool:
    """Return whether this process has the right to mount."""
    return has_capability("self", CAP_SYS_ADMIN, proc_root)


def _parse(line: str) -> Mount | None:
    """Parse a line of mountinfo; return None for another line.

    ``36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/root rw,errors=continue``
    """
    before, _, after = line.partition(" - ")
    fields = before.split(" ")
    if len(fields) < _LEAST_FIELDS:
        return None
    kind, source, options = (*after.split(" "), "", "", "")[:3]
    flags, more = tuple(fields[5].split(",")), tuple(options.split(","))
    return Mount(_unescape(fields[4]), flags, kind, _unescape(source), more, _unescape(fields[3]))


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), text)


def _mount(source: str | None, point: Path, kind: str | None, flags: int, data: str | None) -> None:
    texts = (None if text is None else os.fsencode(text) for text in (source, str(point), kind))
    _call("mount", *texts, ctypes.c_ulong(flags), None if data is None else data.encode())


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
