"""A program that delays every open below a mount.

``python -m chaos.faults.beside.slow_opens SWITCH HARNESS DIRECTORY SECONDS``

The kernel asks this process whether a file may be opened (fanotify(7), FAN_OPEN_PERM), and lets the opener wait for the
answer, which is always yes. When this process ends, the kernel lets all openers go on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import struct
import time
from collections import deque

from chaos.faults.beside.switch import LOOK_SECONDS, Switch

_FAN_CLASS_CONTENT, _FAN_CLOEXEC = 0x4, 0x1
_FAN_MARK_ADD, _FAN_MARK_MOUNT = 0x1, 0x10
_FAN_OPEN_PERM = 0x10000
_FAN_ALLOW = 1
_EVENT = struct.Struct("=IBBHQii")
_ANSWER = struct.Struct("=iI")


def main() -> None:
    """Delay the opens of others in the mount at a directory, until switched off."""
    switch = Switch()
    directory, delay = switch.arguments[0], float(switch.arguments[1])
    group = watch_opens(directory)
    switch.say(watching=directory, opens=0)
    waiting: deque[tuple[float, int]] = deque()
    opens = 0
    while switch.is_on():
        until = min(LOOK_SECONDS, max(0.0, waiting[0][0] - time.monotonic())) if waiting else LOOK_SECONDS
        if select.select([group], [], [], until)[0]:
            now = time.monotonic()
            for descriptor, pid in _events(os.read(group, 4096)):
                waiting.append((now if pid == os.getpid() else now + delay, descriptor))
                opens += pid != os.getpid()
            switch.say(watching=directory, opens=opens)
        while waiting and waiting[0][0] <= time.monotonic():
            allow(group, waiting.popleft()[1])


def watch_opens(directory: str, *, alone: bool = False) -> int:
    """Have the kernel ask before any open in the mount at a directory; ``alone``: before an open of the directory.

    Raises OSError. A directory at which nothing is mounted is refused unless ``alone``: the whole machine opens its
    files in that directory's mount.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not alone and _mount_point(place) != os.path.realpath(directory):
            raise OSError(errno.EINVAL, f"nothing is mounted at {directory}")
        group = libc.fanotify_init(_FAN_CLASS_CONTENT | _FAN_CLOEXEC, os.O_RDONLY | os.O_CLOEXEC)
        marked = group < 0 or libc.fanotify_mark(
            group,
            ctypes.c_uint(_FAN_MARK_ADD | (0 if alone else _FAN_MARK_MOUNT)),
            ctypes.c_uint64(_FAN_OPEN_PERM),
            ctypes.c_int(place),
            None,  # the descriptor's own file, wherever its path leads by now
        )
        if marked:
            code = ctypes.get_errno()
            raise OSError(code, f"opens cannot be watched: {os.strerror(code)}")
    finally:
        os.close(place)
    return int(group)


def _mount_point(descriptor: int, proc: str = "/proc/self") -> str:
    """Return the mount point of an open directory's mount (proc(5), fdinfo and mountinfo).

    Read as bytes, whose lines end with a newline only: a path may hold any other character that would end a line of
    text.
    """
    with open(f"{proc}/fdinfo/{descriptor}", "rb") as lines:  # noqa: PTH123
        number = next(line.split()[1] for line in lines if line.startswith(b"mnt_id:"))
    with open(f"{proc}/mountinfo", "rb") as lines:  # noqa: PTH123
        point = next(fields[4] for line in lines if (fields := line.split(b" "))[0] == number and len(fields) > 4)
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), point))


def allow(group: int, descriptor: int) -> None:
    """Let one opener go on."""
    os.write(group, _ANSWER.pack(descriptor, _FAN_ALLOW))
    os.close(descriptor)


def _events(data: bytes) -> list[tuple[int, int]]:
    """Return descriptor and PID of each event."""
    events = []
    while len(data) >= _EVENT.size:
        length, _, _, _, _, descriptor, pid = _EVENT.unpack_from(data)
        events.append((descriptor, pid))
        data = data[length:]
    return events


if __name__ == "__main__":
    main()
