"""Looks at a run from a thread of its own, so that who shows it never waits for the files of the run."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.live.thread import REST, in_background

if TYPE_CHECKING:
    from chaos.live.state import LiveState

_BETWEEN_LOOKS = 0.25


class Looking:
    """The latest state of a run that is looked at again and again until ``close``."""

    def __init__(self, directory: Path) -> None:
        self.state: LiveState | None = None
        self._directory = directory
        self._over = threading.Event()
        in_background(self._look)

    def close(self) -> None:
        """Look no more. A look that goes on is not waited for."""
        self._over.set()

    def _look(self) -> None:
        # Imported in this thread: it takes a while, and the driver of the run must not wait for it.
        from chaos.live.follower import Follower

        follower = Follower(self._directory)
        while not self._over.is_set():
            began = time.monotonic()
            self.state = follower.state()
            self._over.wait(max(_BETWEEN_LOOKS, REST * (time.monotonic() - began)))
