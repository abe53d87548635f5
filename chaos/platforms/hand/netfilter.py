"""Rules of the kernel's packet filter on a host (nftables), through its own interface (nfnetlink).

Each fault has a table of its own; nobody else's is used or changed. A rule looks at what comes in from one address for
another. What it drops vanishes as in a broken network: nobody is told. A table is made and removed in one act.
Constants: linux/netfilter/nf_tables.h, nfnetlink.h.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_NETFILTER = 12
_TABLES = 10 << 8
_BEGIN, _END = 0x10, 0x11
_NEW_TABLE, _GET_TABLE, _DELETE_TABLE, _NEW_CHAIN, _NEW_RULE, _GET_RULE = (_TABLES | one for one in (0, 1, 2, 3, 6, 7))
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE, _DUMP, _APPEND = 0x1, 0x4, 0x200, 0x400, 0x300, 0x800
_ERROR, _DONE = 2, 3
_IPV4 = 2
_BEFORE_ROUTING, _RAW = 0, -300
"""Where the rules are asked: for all that comes in, before connections are tracked and addresses translated."""
_NESTED = 0x8000
_HEAD = struct.Struct("=IHHII")
_FAMILY = struct.Struct(">BBH")
_ATTRIBUTE = struct.Struct("=HH")
_REGISTER = 1
_SOURCE, _TARGET = 12, 16
"""Where the addresses stand in the header of a packet."""
_OF = 100_000
"""Of so many packets a rule of loss lets a number vanish."""
_BURST = 1 << 16
"""Bytes that may come at once beyond a second's rate: one packet, as the host's interface may put several into one."""
_SECONDS = 10.0
CHAIN = "in"


@dataclass(frozen=True)
class Rule:
    """What becomes of that which comes from ``source`` for ``target``, both IPv4 numbers: all of it vanishes.

    With ``loss`` only so many packets in a hundred do, by chance; with ``rate`` those beyond so many bytes a second.
    """

    source: str
    target: str
    loss: float | None = None
    rate: int | None = None


@dataclass(frozen=True)
class Counted:
    """A rule as the kernel has it, and what it has counted: packets and bytes that came, and those that vanished."""

    rule: Rule
    came: tuple[int, int]
    vanished: tuple[int, int]


def make(table: str, rules: Sequence[Rule]) -> None:
    """Make a table with these rules. Raises OSError: FileExistsError where there is one of that name."""
    name = _text(1, table)
    hook = _nested(4, _number(1, _BEFORE_ROUTING) + _number(2, _RAW))
    chain = _text(1, table) + _text(3, CHAIN) + hook + _number(5, 1) + _text(7, "filter")
    acts = [(_NEW_TABLE, _CREATE | _EXCLUSIVE, name), (_NEW_CHAIN, _CREATE, chain)]
    for rule in rules:
        body = _text(1, table) + _text(2, CHAIN) + _nested(4, b"".join(_expressions(rule)))
        acts.append((_NEW_RULE, _CREATE | _APPEND, body))
    _all_or_nothing(acts)


def remove(table: str) -> bool:
    """Remove a table with all of its rules; False where there is none. Raises OSError."""
    try:
        _all_or_nothing([(_DELETE_TABLE, 0, _text(1, table))])
    except FileNotFoundError:
        return False
    return True


def tables(beginning: str) -> list[str]:
    """The tables whose names begin so. Raises OSError."""
    names = (_string(_attributes(body)[1]) for body in _listed(_GET_TABLE, b""))
    return sorted(name for name in names if name.startswith(beginning))


def listed(table: str) -> list[Counted]:
    """The rules of a table; none where there is no such table. Raises OSError."""
    found = (_attributes(body) for body in _listed(_GET_RULE, _text(1, table)))
    return [_counted(one[4]) for one in found if _string(one[1]) == table]


# What a rule is made of.


def _expressions(rule: Rule) -> Iterator[bytes]:
    for place, address in ((_SOURCE, rule.source), (_TARGET, rule.target)):
        yield _expression("payload", _number(1, _REGISTER), _number(2, 1), _number(3, place), _number(4, 4))
        yield _compared(0, socket.inet_aton(address))
    yield _expression("counter")
    if rule.loss is not None:
        yield _expression("numgen", _number(1, _REGISTER), _number(2, _OF), _number(3, 1))
        order = (_number(1, _REGISTER), _number(2, _REGISTER), _number(3, 1), _number(4, 4), _number(5, 4))
        yield _expression("byteorder", *order)
        yield _compared(2, struct.pack(">I", round(rule.loss * _OF / 100)))
        yield _expression("counter")
    if rule.rate is not None:
        long = (_attribute(1, struct.pack(">Q", rule.rate)), _attribute(2, struct.pack(">Q", 1)))
        yield _expression("limit", *long, _number(3, _BURST), _number(4, 1), _number(5, 1))
        yield _expression("counter")
    yield _expression("immediate", _number(1, 0), _nested(2, _nested(2, _number(1, 0))))


def _compared(how: int, value: bytes) -> bytes:
    return _expression("cmp", _number(1, _REGISTER), _number(2, how), _nested(3, _attribute(1, value)))


def _expression(name: str, *parts: bytes) -> bytes:
    return _nested(1, _text(1, name) + _nested(2, b"".join(parts)))


def _counted(expressions: bytes) -> Counted:
    """A rule of this module's as the kernel lists it."""
    compared: list[bytes] = []
    counters: list[tuple[int, int]] = []
    rate = None
    for _, element in _each(expressions):
        told = _attributes(element)
        name, parts = _string(told[1]), _attributes(told.get(2, b""))
        if name == "cmp":
            compared.append(_attributes(parts[3])[1])
        elif name == "counter":
            counters.append((int.from_bytes(parts[2], "big"), int.from_bytes(parts[1], "big")))
        elif name == "limit":
            rate = int.from_bytes(parts[1], "big")
    source, target = (socket.inet_ntoa(one) for one in compared[:2])
    loss = round(int.from_bytes(compared[2], "big") * 100 / _OF, 3) if len(compared) > 2 else None
    return Counted(Rule(source, target, loss, rate), counters[0], counters[-1])


# Talking to the kernel.


def _all_or_nothing(acts: Sequence[tuple[int, int, bytes]]) -> None:
    whole = _message(_BEGIN, _REQUEST, 0, b"", family=0, subsystem=_TABLES >> 8)
    for number, (kind, flags, body) in enumerate(acts, 1):
        whole += _message(kind, _REQUEST | _ACKNOWLEDGE | flags, number, body)
    whole += _message(_END, _REQUEST, len(acts) + 1, b"", family=0, subsystem=_TABLES >> 8)
    with _channel() as channel:
        channel.send(whole)
        open_ = set(range(1, len(acts) + 1))
        while open_:
            for kind, number, body in _messages(channel.recv(1 << 16)):
                if kind == _ERROR:
                    _raise(-struct.unpack_from("=i", body)[0])
                    open_.discard(number)


def _listed(kind: int, body: bytes) -> Iterator[bytes]:
    """All that there is of a kind, each without its head."""
    with _channel() as channel:
        channel.send(_message(kind, _REQUEST | _DUMP, 1, body))
        for answer, _, content in itertools.chain.from_iterable(iter(lambda: _messages(channel.recv(1 << 16)), None)):
            if answer == _DONE:
                return
            if answer == _ERROR:
                if (refused := -struct.unpack_from("=i", content)[0]) == errno.ENOENT:
                    return
                _raise(refused)
            yield content[_FAMILY.size :]


def _channel() -> socket.socket:
    channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
    channel.settimeout(_SECONDS)
    return channel


def _raise(number: int) -> None:
    if number:
        raise OSError(number, f"the packet filter (nftables): {os.strerror(number)}")


def _message(kind: int, flags: int, number: int, body: bytes, *, family: int = _IPV4, subsystem: int = 0) -> bytes:
    content = _FAMILY.pack(family, 0, subsystem) + body
    return _HEAD.pack(_HEAD.size + len(content), kind, flags, number, 0) + content


def _messages(data: bytes) -> Iterable[tuple[int, int, bytes]]:
    while len(data) >= _HEAD.size:
        size, kind, _, number, _ = _HEAD.unpack_from(data)
        yield kind, number, data[_HEAD.size : size]
        data = data[(size + 3) & ~3 :]


def _attributes(data: bytes) -> dict[int, bytes]:
    return dict(_each(data))


def _each(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(data)
        yield kind & 0x3FFF, data[_ATTRIBUTE.size : size]
        data = data[(max(size, _ATTRIBUTE.size) + 3) & ~3 :]


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + b"\0" * (-size % 4)


def _nested(kind: int, value: bytes) -> bytes:
    return _attribute(kind | _NESTED, value)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">i", value))


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode("ascii") + b"\0")


def _string(value: bytes) -> str:
    return value.rstrip(b"\0").decode("ascii", "replace")
