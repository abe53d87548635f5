"""Messages between controller and processors: JSON with a length before it, on a connection that proved the secret."""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import struct
import threading
from typing import Any

_LENGTH = struct.Struct(">I")
_MAX_MESSAGE = 1 << 20

Message = dict[str, Any]


class Link:
    """One connection. Sending is safe from any thread; one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()

    def send(self, message: Message) -> bool:
        """Send a message; False when the other side has gone."""
        body = json.dumps(message).encode()
        try:
            with self._lock:
                self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError:
            return False
        return True

    def receive(self) -> Message | None:
        """Wait for a message. None when the other side has gone or sends what no party of this protocol would."""
        head = self._receive(_LENGTH.size)
        if head is None:
            return None
        (length,) = _LENGTH.unpack(head)
        body = self._receive(length) if length <= _MAX_MESSAGE else None
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


def proof(secret: bytes, run: str, rank: int) -> str:
    """What a processor of ``rank`` in ``run`` shows to the controller."""
    return hmac.new(secret, f"processor {run} {rank}".encode(), "sha256").hexdigest()


def proves(message: Message, secret: bytes, run: str) -> bool:
    """Whether a registration comes from a rank of this run."""
    rank, shown = message.get("rank"), message.get("proof")
    if not isinstance(rank, int) or not isinstance(shown, str) or not shown.isascii():
        return False
    return hmac.compare_digest(shown, proof(secret, run, rank))
