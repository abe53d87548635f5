"""Generations of the communicator: each stop ends one, and the ranks meet again in the next.

A replaced process has no memory of stops before its start, so the generation is in the file system: a directory for
each, in the run's private directory. A generation for an online repair admits only the processes that exist already:
where the repair fails, they leave it and meet their new ones in the generation after it. The network that they meet
over is in the file system, too: a communicator on one host has no network card, and a switch changes the path of its
sockets.
"""

from __future__ import annotations

import os
import re


class Generations:
    """The meeting places of the ranks of one attempt, below ``directory``."""

    def __init__(self, directory: str, attempt: str) -> None:
        self._directory = directory
        self._attempt = attempt
        self._backup = os.path.join(directory, f"{attempt}-backup")
        self._current: int | None = None

    @property
    def network(self) -> str:
        """``primary``, or ``backup`` once the ranks have switched."""
        return "backup" if os.path.isdir(self._backup) else "primary"

    def use_backup(self) -> None:
        """Let the ranks meet over the backup network from the next generation on.

        Every rank calls this before it goes there. There is no way back: a rehearsal has no need of one.
        """
        os.makedirs(self._backup, mode=0o700, exist_ok=True)

    def place(self) -> str:
        """Return the directory in which the ranks meet.

        A new process joins the newest generation there is, or the one after it where the newest is closed to new
        processes: the others may not have gone on yet.
        """
        if self._current is None:
            newest = self._newest()
            self._current = newest + 1 if os.path.exists(self._closed(newest)) else newest
        place = self._make(self._current)
        if self.network == "primary":
            return place
        over_backup = os.path.join(place, "backup")
        os.makedirs(over_backup, mode=0o700, exist_ok=True)
        return over_backup

    def announce_next(self) -> None:
        """Announce that this generation is over. Every rank does so before any of them meets in the next one."""
        self.place()
        assert self._current is not None
        self._make(self._current + 1)

    def enter_next(self, *, same_processes: bool = False) -> None:
        """Go to the next generation. ``same_processes`` closes it to new processes."""
        self.announce_next()
        assert self._current is not None
        if same_processes:
            with open(self._closed(self._current + 1), "w", encoding="ascii"):
                pass
        self._current += 1

    def _newest(self) -> int:
        pattern = re.compile(re.escape(self._attempt) + r"-(\d+)")
        numbers = [int(match[1]) for name in os.listdir(self._directory) if (match := pattern.fullmatch(name))]
        return max(numbers, default=1)

    def _path(self, generation: int) -> str:
        return os.path.join(self._directory, f"{self._attempt}-{generation}")

    def _closed(self, generation: int) -> str:
        return os.path.join(self._path(generation), "closed")

    def _make(self, generation: int) -> str:
        path = self._path(generation)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path
