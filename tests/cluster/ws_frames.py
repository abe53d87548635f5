"""The server's side of a WebSocket (RFC 6455), as far as an exec stream of Kubernetes needs it."""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
import threading

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE, _PING, _PONG, _BINARY = 8, 9, 10, 2


def accept_key(key: str) -> str:
    """What a server answers to a client's Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _MAGIC).digest()).decode()


class Frames:
    """Frames over a connected socket. One thread may read while others write."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._writing = threading.Lock()

    def send(self, data: bytes, opcode: int = _BINARY) -> None:
        """Send one frame. Raises OSError."""
        if len(data) < 126:
            head = struct.pack("!BB", 0x80 | opcode, len(data))
        elif len(data) < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, len(data))
        with self._writing:
            self._connection.sendall(head + data)

    def receive(self) -> bytes | None:
        """The data of the next message; None at the end."""
        whole = b""
        while True:
            head = self._exactly(2)
            if head is None:
                return None
            final, opcode, masked, size = head[0] & 0x80, head[0] & 0x0F, head[1] & 0x80, head[1] & 0x7F
            if size >= 126:
                more = self._exactly(2 if size == 126 else 8)
                if more is None:
                    return None
                size = int.from_bytes(more, "big")
            mask = self._exactly(4) if masked else bytes(4)
            data = self._exactly(size)
            if mask is None or data is None or opcode == _CLOSE:
                return None
            if masked:
                key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
                data = (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
            if opcode == _PING:
                self.send(data, _PONG)
            elif opcode != _PONG:
                whole += data
                if final:
                    return whole

    def close(self) -> None:
        """Say that this is the end, and end it."""
        try:
            self.send(b"\x03\xe8", _CLOSE)
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self._connection.recv(size - len(data))
            except OSError:
                return None
            if not more:
                return None
            data += more
        return data
