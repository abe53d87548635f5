"""Callers that have connected to a run's listener and not yet shown their identity: few, and not for long.

Every listener of a run uses this, so that no caller can keep the real ranks out: not by silence, not by sending one
byte at a time, and not by crowds that take every descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED)
"""Errors with which accepting fails now, and not for ever."""
_SHORTAGE_SECONDS = 0.05


class Unproven:
    """At most ``most`` callers, each for at most ``seconds``.

    A caller that stays longer is cut off, and so is the oldest of too many. The cut ends the connection for the reader
    of it; the reader still calls :meth:`leave`.
    """

    def __init__(self, *, most: int = 256, seconds: float = 10.0) -> None:
        self._most = most
        self._seconds = seconds
        self._limits: dict[socket.socket, threading.Timer] = {}
        self._lock = threading.Lock()

    def come(self, caller: socket.socket) -> None:
        """Note that a caller has connected."""
        # A limit for each read would not do: one byte at a time, a caller could stay for ever.
        limit = threading.Timer(self._seconds, self._cut_off, [caller])
        limit.daemon = True
        with self._lock:
            self._limits[caller] = limit
            over = list(self._limits)[: -self._most]
        limit.start()
        for oldest in over:
            self._cut_off(oldest)

    def leave(self, caller: socket.socket) -> bool:
        """Let go of a caller that has shown its identity, or is gone; False when it had been cut off before."""
        with self._lock:
            limit = self._limits.pop(caller, None)
        if limit is None:
            return False
        limit.cancel()
        return True

    def make_room(self) -> None:
        """Cut off the oldest caller: there is no descriptor left for the next."""
        with self._lock:
            oldest = next(iter(self._limits), None)
        if oldest is not None:
            self._cut_off(oldest)

    def _cut_off(self, caller: socket.socket) -> None:
        if self.leave(caller):  # else it has shown its identity at this moment
            with contextlib.suppress(OSError):  # it has gone by itself
                caller.shutdown(socket.SHUT_RDWR)


def callers(listener: socket.socket, unproven: Unproven, closing: threading.Event) -> Iterator[socket.socket]:
    """Yield every caller that connects to ``listener``, until it is shut down or ``closing`` is set."""
    while not closing.is_set():
        try:
            caller, _ = listener.accept()
        except OSError as error:
            if error.errno not in _SHORTAGES:
                return
            unproven.make_room()
            closing.wait(_SHORTAGE_SECONDS)
            continue
        unproven.come(caller)
        yield caller
