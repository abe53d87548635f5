"""Generations of the communicator: each stop ends one, and the ranks meet again in the next.

A rank whose process is replaced has no memory of what was stopped before it began, so the generation is in the file
system: a directory for each, in the run's private directory.
"""

from __future__ import annotations

import os
import re


class Generations:
    """The meeting places of the ranks of one attempt, below ``directory``."""

    def __init__(self, directory: str, attempt: str) -> None:
        self._directory = directory
        self._attempt = attempt
        self._current: int | None = None

    def place(self) -> str:
        """The directory in which the ranks meet. A process that comes anew joins the newest generation there is."""
        if self._current is None:
            self._current = self._newest()
        return self._make(self._current)

    def announce_next(self) -> None:
        """This generation is over. Every rank says so before any of them meets in the next one."""
        self.place()
        assert self._current is not None
        self._make(self._current + 1)

    def enter_next(self) -> None:
        """Go to the next generation."""
        self.announce_next()
        assert self._current is not None
        self._current += 1

    def _newest(self) -> int:
        pattern = re.compile(re.escape(self._attempt) + r"-(\d+)")
        found = [int(match[1]) for name in os.listdir(self._directory) if (match := pattern.fullmatch(name))]
        return max(found, default=1)

    def _make(self, generation: int) -> str:
        path = os.path.join(self._directory, f"{self._attempt}-{generation}")
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path
