"""Callers that have connected to a listener of a run and not yet shown who they are: few, and not for long.

Used wherever a run listens, so that no caller can keep the real ranks out: not by saying nothing, not by saying one
byte at a time, and not by coming in crowds until no descriptor is left.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED)
"""Accepting fails with these now, and will not for ever."""
_SHORTAGE_SECONDS = 0.05


class Unproven:
    """At most ``most`` callers, each for at most ``seconds``. Who stays longer, or is the oldest of more, is cut off.

    Being cut off ends the connection for whoever reads from it; that one still calls :meth:`leave`.
    """

    def __init__(self, *, most: int = 256, seconds: float = 10.0) -> None:
        self._most = most
        self._seconds = seconds
        self._limits: dict[socket.socket, threading.Timer] = {}
        self._lock = threading.Lock()

    def come(self, caller: socket.socket) -> None:
        """A caller has connected."""
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
        """Return a caller has shown who it is, or is gone; False when it had been cut off before."""
        with self._lock:
            limit = self._limits.pop(caller, None)
        if limit is None:
            return False
        limit.cancel()
        return True

    def make_room(self) -> None:
        """Cut off the oldest: there is no descriptor left for the next."""
        with self._lock:
            oldest = next(iter(self._limits), None)
        if oldest is not None:
            self._cut_off(oldest)

    def _cut_off(self, caller: socket.socket) -> None:
        if self.leave(caller):  # else it has shown who it is in this moment
            with contextlib.suppress(OSError):  # it has gone by itself
                caller.shutdown(socket.SHUT_RDWR)


def callers(listener: socket.socket, unproven: Unproven, closing: threading.Event) -> Iterator[socket.socket]:
    """Everybody who connects to ``listener``, until it is shut down or ``closing`` is set."""
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
