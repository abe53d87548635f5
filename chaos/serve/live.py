"""The runs in progress for the live page: followed while somebody looks, and shown for a while after their end."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chaos.live import REST, Follower, as_json, follow, live_runs, waiting_for_cores
from chaos.serve.runs import RunDirectories

FORMAT = 1
MOST_FOLLOWED = 12
"""Runs that are followed, the newest of those in progress."""

MOST_ENDED = 4
"""Runs that have ended while somebody looked, and are still shown."""

MOST_RANKS = 256
"""Most ranks that are listed one by one. With more ranks only the conspicuous ones are listed."""

_AGAIN_SECONDS = 0.5
_LOOK_SECONDS = 2.0
_ORDINARY = {"training", "not started", "starting", "not recorded", "trained", "ended"}
"""States of a rank that do not stand out among many."""


class LiveRuns:
    """The data of the live page. One look at the runs serves all readers."""

    def __init__(
        self,
        directories: RunDirectories,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int | None] = lambda: None,
    ) -> None:
        """``now`` gives the wall clock in nanoseconds; None is the moment after a run's files are read."""
        self._directories = directories
        self._clock = clock
        self._now = now
        self._followed: dict[Path, Follower] = {}
        self._running: list[Path] = []
        self._ended: OrderedDict[Path, Follower] = OrderedDict()
        self._document = b""
        self._due = self._looked = float("-inf")
        self._lock, self._listing = threading.Lock(), threading.Lock()

    def document(self) -> bytes:
        """Return the states of the runs as JSON."""
        with self._lock:
            began = self._clock()
            if began >= self._due:
                self._document = json.dumps(self._states(), allow_nan=False).encode()
                self._due = self._clock() + max(_AGAIN_SECONDS, REST * (self._clock() - began))
            return self._document

    def in_progress(self) -> int:
        """Return the number of runs in progress."""
        return len(self._look())

    def _look(self) -> list[Path]:
        """Look for runs that have begun or ended. In a directory of thousands this takes a while.

        It waits for no look at the runs themselves: the first look at a long one takes longer.
        """
        with self._listing:
            if self._clock() - self._looked >= _LOOK_SECONDS:
                shown = self._directories.listing().runs
                self._running = [path for path in live_runs(self._directories.reports) if path.name in shown]
                self._looked = self._clock()
            return self._running

    def _states(self) -> dict[str, Any]:
        every = self._look()
        running = every[:MOST_FOLLOWED]
        for path in [path for path in self._followed if path not in running]:
            self._end(path, self._followed.pop(path), every)
        for path in running:
            ended = self._ended.pop(path, None)
            self._followed.setdefault(path, ended or follow(path))
        states = [
            _state(path, follower, self._now()) for path, follower in reversed(self._ended.items()) if path.is_dir()
        ]
        return {
            "format": FORMAT,
            "runs": [_state(path, self._followed[path], self._now()) for path in running],
            # A fault-free run is a part of another.
            "ended": [state for state in states if not state["baseline_of"]],
            "more": max(0, len(every) - MOST_FOLLOWED),
            "cores": [asdict(holder) for holder in waiting_for_cores()],
        }

    def _end(self, path: Path, follower: Follower, running: list[Path]) -> None:
        """Keep a run that has ended, and not one that only others have pushed out."""
        if path not in running:
            self._ended[path] = follower
            while len(self._ended) > MOST_ENDED:
                self._ended.popitem(last=False)


def _state(path: Path, follower: Follower, now: int | None) -> dict[str, Any]:
    """Return the state of a run, with ``link``, the name of its directory in a URL."""
    state = as_json(follower.state(now))
    if len(state["rank"]) > MOST_RANKS:
        state["rank"] = [rank for rank in state["rank"] if rank["state"] not in _ORDINARY][:MOST_RANKS]
    return {**state, "link": quote(path.name, safe="", errors="surrogateescape")}
