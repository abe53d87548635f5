"""The attributes of messages to the kernel and of its answers (netlink(7)). Some attributes hold others."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ATTRIBUTE = struct.Struct("=HH")
_NESTED = 0x8000
_KIND = 0x3FFF


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute that holds a value."""
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + b"\0" * (-size % 4)


def nested(kind: int, value: bytes) -> bytes:
    """Return an attribute that holds others."""
    return attribute(kind | _NESTED, value)


def number(kind: int, value: int) -> bytes:
    """Return an attribute that holds a 32-bit number in network order, as the packet filter expects."""
    return attribute(kind, struct.pack(">i", value))


def text(kind: int, value: str) -> bytes:
    """Return an attribute that holds a name."""
    return attribute(kind, value.encode("ascii") + b"\0")


def string(value: bytes) -> str:
    """Return the name that an attribute holds."""
    return value.rstrip(b"\0").decode("ascii", "replace")


def each(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes in a sequence, each with its kind."""
    while len(data) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(data)
        yield kind & _KIND, data[_ATTRIBUTE.size : size]
        data = data[(max(size, _ATTRIBUTE.size) + 3) & ~3 :]


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes by their kinds."""
    return dict(each(data))
