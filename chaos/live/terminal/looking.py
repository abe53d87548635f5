"""Looks at a run from a thread of its own, so that who shows it never waits for the files of the run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from chaos.live.follower import Follower
from chaos.live.state import LiveState

_BETWEEN_LOOKS = 0.25
_REST = 10
"""Ratio of the rest after a look to the time of the look, at least: the job needs the processors itself."""
_NICE = 10


class Looking:
    """The latest state of a run that is looked at again and again until ``close``.

    An error of the view is none of the run: nothing more is seen then.
    """

    def __init__(self, directory: Path, seen: Callable[[LiveState], None] = lambda state: None) -> None:
        """Begin to look. ``seen`` is called with each state, in the thread that looks."""
        self.state: LiveState | None = None
        self._follower = Follower(directory)
        self._seen = seen
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name=f"look at {directory.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._over.set()

    def _look(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        with contextlib.suppress(Exception):
            while not self._over.is_set():
                began = time.monotonic()
                self.state = self._follower.state()
                self._seen(self.state)
                self._over.wait(max(_BETWEEN_LOOKS, _REST * (time.monotonic() - began)))
