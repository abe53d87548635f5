"""The times of this process between two moments, by the kernel: running, waiting for a processor, or neither.

A process that is stopped by SIGSTOP, or whose machine is frozen, neither runs nor is ready to run, so none of this time
is counted for any of its threads. A process without a processor is ready to run all the while.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.linux.procfs import PROC, RunTimes, allowed_cores, run_times, stolen_times


@dataclass(frozen=True)
class Spent:
    """Nanoseconds since the last look.

    ``ran`` and ``waited`` (ready to run, without a processor) are sums over the threads: one at a time has the
    interpreter's lock, and a thread that waits for the lock is not ready to run. ``stolen``: the host of a virtual
    machine had taken the processor meanwhile. ``suspended``: the machine slept, which the monotonic clock does not
    show.
    """

    ran: int = 0
    waited: int = 0
    stolen: int = 0
    suspended: int = 0


def suspended_time() -> int:
    """Return how long the machine has slept since boot, in nanoseconds."""
    monotonic = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic)


class OwnTimes:
    """Looks repeatedly at the times of this process."""

    def __init__(self, proc_root: Path = PROC, suspended: Callable[[], int] = suspended_time) -> None:
        self._proc = proc_root
        self._suspended = suspended
        self._threads = run_times(os.getpid(), proc_root)
        self._stolen = stolen_times(proc_root)
        self._slept = suspended()

    def look(self) -> Spent:
        """Return the times gained since the last look; nothing that the kernel does not count."""
        threads, self._threads = self._threads, run_times(os.getpid(), self._proc)
        stolen, self._stolen = self._stolen, stolen_times(self._proc)
        slept, self._slept = self._slept, self._suspended()
        nothing = RunTimes(0, 0, 0)
        gained = [(now, threads.get(thread, nothing)) for thread, now in self._threads.items()]
        cores = allowed_cores(os.getpid(), self._proc)
        taken = [now - stolen.get(core, now) for core, now in self._stolen.items() if core in cores]
        return Spent(
            ran=sum(max(0, now.ran - then.ran) for now, then in gained),
            waited=sum(max(0, now.waited - then.waited) for now, then in gained),
            stolen=max(taken, default=0),
            suspended=max(0, self._slept - slept),
        )
