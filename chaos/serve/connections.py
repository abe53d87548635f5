"""The connections that are open: their number is limited, and nobody without the token keeps others out."""

from __future__ import annotations

import contextlib
import socket
import threading

MOST_CONNECTIONS = 32
"""Connections at a time. A browser holds some for each page."""


class Connections:
    """The open connections, the oldest first, each with whether it has shown the token."""

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self._most = most
        self._proved: dict[socket.socket, bool] = {}
        self._lock = threading.Lock()

    def add(self, connection: socket.socket) -> bool:
        """Return whether a connection may stay. The oldest without the token is cut off where there are too many."""
        with self._lock:
            if len(self._proved) >= self._most:
                oldest = next((other for other, proved in self._proved.items() if not proved), None)
                if oldest is None:
                    return False
                del self._proved[oldest]
                with contextlib.suppress(OSError):  # it may have ended meanwhile
                    oldest.shutdown(socket.SHUT_RDWR)
            self._proved[connection] = False
            return True

    def prove(self, connection: socket.socket) -> None:
        """Take note that a connection has shown the token."""
        with self._lock:
            if connection in self._proved:
                self._proved[connection] = True

    def remove(self, connection: socket.socket) -> None:
        """Forget a connection that ends."""
        with self._lock:
            self._proved.pop(connection, None)
