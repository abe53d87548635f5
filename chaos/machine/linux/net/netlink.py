"""Messages to the kernel and its answers (netlink(7))."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

REQUEST, ACKNOWLEDGE, DUMP = 0x1, 0x4, 0x300
_ERROR, _DONE = 2, 3
_PART_OF_SEVERAL = 2
_HEAD = struct.Struct("=IHHII")


def message(kind: int, flags: int, body: bytes) -> bytes:
    """Return a message of this kind."""
    return _HEAD.pack(_HEAD.size + len(body), kind, flags, 1, 0) + body


def send_request(channel: socket.socket, kind: int, flags: int, body: bytes) -> int:
    """Send one request, and return the number of the kernel's error, 0 where it has none."""
    channel.send(message(kind, flags, body))
    for answer, content in answers(channel):
        return -int(struct.unpack_from("=i", content)[0]) if answer == _ERROR else 0
    return 0


def answers(channel: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield the kernel's answers to one request, each with its kind, up to the last."""
    while True:
        data = channel.recv(1 << 16)
        while len(data) >= _HEAD.size:
            size, kind, flags, _, _ = _HEAD.unpack_from(data)
            if kind == _DONE:
                return
            yield kind, data[_HEAD.size : size]
            if not flags & _PART_OF_SEVERAL:
                return
            data = data[(size + 3) & ~3 :]
