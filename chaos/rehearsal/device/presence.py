"""The ranks of a communicator that are there: each holds a lock on a file of its own, which the kernel frees with it.

So ranks without a connection to each other see, as a connection would show, that a process has ended: not that it has
stopped, or that its link is down. The files count for this purpose alone, never as proof of a rank's identity.
"""

from __future__ import annotations

import contextlib
import fcntl
import os


class Presence:
    """The presence of ``rank`` and of the others, by files in ``directory``."""

    def __init__(self, rank: int, directory: str) -> None:
        self._rank = rank
        self._directory = directory
        self._held: int | None = None

    def enter(self) -> None:
        """Be present until :meth:`leave`, or until this process ends."""
        if self._held is None:
            self._held = os.open(self._path(self._rank), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_SH)  # shared: an earlier communicator of this process may hold it still

    def leave(self) -> None:
        """End this rank's presence."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def has_come(self, rank: int) -> bool:
        """Return whether a rank has been present; it may have left since."""
        return os.path.exists(self._path(rank))

    def is_here(self, rank: int) -> bool:
        """Return whether a rank is present. Where the look-up fails it counts as present."""
        try:
            file = os.open(self._path(rank), os.O_RDWR)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            return True
        finally:
            os.close(file)

    def _path(self, rank: int) -> str:
        return os.path.join(self._directory, f"here-{rank}")
