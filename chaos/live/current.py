"""All runs that go on in a directory of reports, each followed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from chaos.live.follower import Follower
from chaos.live.progressing import live_runs
from chaos.live.state import LiveState
from chaos.live.thread import REST, in_background
from chaos.machine.linux.procfs import read_stat
from chaos.store.ownership import read_owner

_SECONDS = 1.0
_GENERATIONS = 4
"""Processes between one that starts runs and the harness: a shell, a wrapper."""
_LONGEST_LOOK = 10.0


class CurrentRuns:
    """The states of the runs that go on now, looked at from a thread of its own until ``close``.

    A run that makes its fault-free run is left out: the fault-free run is what goes on.

    Args:
        reports: the directory of reports.
        mine: whether the process of this PID makes one of the runs to be shown.
        on_look: is called with the states after each look, in the thread that looks.
    """

    def __init__(
        self,
        reports: Path,
        mine: Callable[[int], bool] = lambda pid: True,
        on_look: Callable[[tuple[LiveState, ...]], None] = lambda states: None,
    ) -> None:
        self.states: tuple[LiveState, ...] = ()
        self._reports, self._mine, self._on_look = reports, mine, on_look
        self._followers: dict[Path, Follower] = {}
        self._over = threading.Event()
        self._thread = in_background(self._look)

    def close(self) -> None:
        """Look no more; ``on_look`` is not called afterwards."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_LOOK)

    def _look(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            by_owner: dict[int, Path] = {}
            for path in reversed(live_runs(self._reports)):
                owner = read_owner(path)
                if owner is not None and self._mine(owner.pid):
                    by_owner[owner.pid] = path  # the newest of each harness
            now = list(by_owner.values())
            self._followers = {path: self._followers.get(path) or Follower(path) for path in now}
            self.states = tuple(follower.state() for follower in self._followers.values())
            self._on_look(self.states)
            self._over.wait(max(_SECONDS, REST * (time.monotonic() - began)))


def is_started_here(pid: int) -> bool:
    """Return whether this process has started the process of a harness, itself or by a few others."""
    for _ in range(_GENERATIONS):
        stat = read_stat(pid)
        if stat is None:
            return False
        pid = stat.ppid
        if pid == os.getpid():
            return True
    return False
