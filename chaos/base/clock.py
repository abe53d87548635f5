"""Time as a collaborator: code that measures, records or waits is given a clock."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The clocks of one host, and a way to let time pass."""

    def mono(self) -> int:
        """Return nanoseconds of CLOCK_MONOTONIC. Comparable between processes of one boot of one host."""

    def wall(self) -> int:
        """Return nanoseconds since the epoch, CLOCK_REALTIME. For people: it may jump."""

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""


class SystemClock:
    """The kernel's clocks."""

    def mono(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def wall(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_REALTIME)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
"""Has no state, so one is enough."""


class BootUnknown(RuntimeError):
    """The kernel does not name the present boot. The text says what has to be there."""


def boot_id() -> str:
    """Return the kernel's random id of this boot: monotonic times, PIDs and start times mean nothing beyond it.

    Raises BootUnknown where it cannot be read, as in a container without /proc/sys.
    """
    path = Path("/proc/sys/kernel/random/boot_id")
    try:
        return path.read_text("ascii").strip()
    except OSError as error:
        raise BootUnknown(
            f"{path} cannot be read ({error.strerror}), and without it a process cannot be distinguished from a later "
            "one with the same PID: mount /proc completely"
        ) from error
