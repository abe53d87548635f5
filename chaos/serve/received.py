"""The bytes of a request, with a limit of their number and of the time that they may take."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from http.client import HTTPException
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_BYTES = 16 << 10
"""Bytes of a request line with its headers."""

SECONDS = 30.0
"""Seconds for which a connection may be silent before a request, and in which a request has to arrive."""


class TooMuchReceived(HTTPException):
    """The request is larger than any that is answered. The standard library takes it for too many headers."""


class Received(io.RawIOBase):
    """Reads the bytes of a connection. ``begin`` starts a request, with a new allowance of bytes and seconds."""

    def __init__(self, connection: socket.socket, clock: Callable[[], float]) -> None:
        super().__init__()
        self._connection = connection
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Start a request."""
        self._left = MOST_BYTES
        self._end = self._clock() + SECONDS

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Receive the present bytes, or wait for some. Raises TooMuchReceived, and TimeoutError after the time."""
        if self._left <= 0:
            raise TooMuchReceived
        seconds = self._end - self._clock()
        if seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(buffer, min(self._left, memoryview(buffer).nbytes))
        self._left -= count
        return count
