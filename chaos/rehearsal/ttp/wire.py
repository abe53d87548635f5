"""Messages between controller and processors: JSON with a length before it, on a connection that proved the secret."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from typing import Any

_LENGTH = struct.Struct(">I")
_MAX_MESSAGE = 1 << 20
MAX_UNPROVEN = 1 << 10
"""Bytes of a message from a party that has proved nothing yet."""

Message = dict[str, Any]


class Link:
    """One connection. Sending is safe from any thread; one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()

    def send(self, message: Message) -> bool:
        """Send a message; return False when the other side has gone."""
        body = json.dumps(message).encode()
        try:
            with self._lock:
                self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError:
            return False
        return True

    def receive(self, most: int = _MAX_MESSAGE) -> Message | None:
        """Wait for a message of up to ``most`` bytes.

        Returns None when the other side has gone or breaks the protocol.
        """
        head = self._receive(_LENGTH.size)
        if head is None:
            return None
        (length,) = _LENGTH.unpack(head)
        body = self._receive(length) if length <= most else None
        if body is None:
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None

    def close(self) -> None:
        """Close the connection; a thread that receives on it is woken."""
        with contextlib.suppress(OSError):  # the other side may have closed it first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _receive(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                chunk = self._socket.recv(size - len(data))
            except OSError:
                return None
            if not chunk:
                return None
            data += chunk
        return data
