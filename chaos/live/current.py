"""All runs that go on in directories of reports, each followed, and the harnesses that wait for a core."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.live.thread import REST, in_background
from chaos.machine.linux.procfs import read_stat

if TYPE_CHECKING:
    from chaos.live.follower import Follower
    from chaos.live.state import CoresWait, LiveState

_SECONDS = 1.0
_GENERATIONS = 4
"""Processes between one that starts runs and the harness: a shell, a wrapper."""


@dataclass(frozen=True)
class Current:
    """The states of runs now, and the harnesses that have no run yet because they wait for a core."""

    states: tuple[LiveState, ...] = ()
    waits: tuple[CoresWait, ...] = ()


class CurrentRuns:
    """Looks at the current runs from a thread of its own until ``close``.

    A run that makes its fault-free run is left out: the fault-free run is the current run.

    Args:
        places: returns the directories of reports.
        mine: whether the process of this PID makes one of the runs to be shown.
        on_look: is called after each look, in the thread that looks.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[Path]],
        mine: Callable[[int], bool] = lambda pid: True,
        on_look: Callable[[Current], None] = lambda current: None,
    ) -> None:
        self.now = Current()
        self._places, self._mine, self._on_look = places, mine, on_look
        self._followers: dict[Path, Follower] = {}
        self._over = threading.Event()
        in_background(self._look_again_and_again)

    def close(self) -> None:
        """Look no more. A look that goes on is not waited for, so ``on_look`` may be called once more."""
        self._over.set()

    def _look_again_and_again(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            self.now = Current(self._states(), self._waits())
            if not self._over.is_set():
                self._on_look(self.now)
            self._over.wait(max(_SECONDS, REST * (time.monotonic() - began)))

    def _states(self) -> tuple[LiveState, ...]:
        # Imported in this thread: it takes a while, and who starts the runs must not wait for it.
        from chaos.live.follower import Follower
        from chaos.live.progressing import live_runs
        from chaos.store.ownership import read_owner

        by_owner: dict[int, Path] = {}
        for path in (path for place in self._places() for path in reversed(live_runs(place))):
            owner = read_owner(path)
            if owner is not None and self._mine(owner.pid):
                by_owner[owner.pid] = path  # the newest of each harness
        self._followers = {path: self._followers.get(path) or Follower(path) for path in by_owner.values()}
        return tuple(follower.state() for follower in self._followers.values())

    def _waits(self) -> tuple[CoresWait, ...]:
        from chaos.live.holders import waits_for_cores

        return tuple(wait for wait in waits_for_cores() if self._mine(wait.pid))


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
