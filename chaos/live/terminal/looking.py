"""Looks at a run from a thread of its own, so that who shows it never waits for the files of the run."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from chaos.live.follower import Follower
from chaos.live.state import LiveState
from chaos.live.thread import REST, in_background

_BETWEEN_LOOKS = 0.25


class Looking:
    """The latest state of a run that is looked at again and again until ``close``."""

    def __init__(self, directory: Path) -> None:
        self.state: LiveState | None = None
        self._follower = Follower(directory)
        self._over = threading.Event()
        in_background(self._look)

    def close(self) -> None:
        """Look no more."""
        self._over.set()

    def _look(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            self.state = self._follower.state()
            self._over.wait(max(_BETWEEN_LOOKS, REST * (time.monotonic() - began)))
