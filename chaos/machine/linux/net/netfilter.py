"""Rules of the kernel's packet filter on a host (nftables), through its own interface (nfnetlink).

Each fault has a table of its own; no other table is used or changed. A rule matches packets that come in from one
address for another. Dropped packets vanish as in a broken network: neither side is notified. Packets that are to wait
are redirected to a device (:mod:`chaos.machine.linux.net.ifb_delay`), by a table for the device that they come in at. A
table is made and removed in one act. Constants: linux/netfilter/nf_tables.h, nfnetlink.h.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaos.machine.linux.net.attributes import attribute, attributes, each, nested, number, string, text
from chaos.machine.linux.net.ports import ANY, Ports

_NETFILTER = 12
_TABLES = 10 << 8
_BEGIN, _END = 0x10, 0x11
_NEW_TABLE, _GET_TABLE, _DELETE_TABLE, _NEW_CHAIN, _NEW_RULE, _GET_RULE = (
    _TABLES | call for call in (0, 1, 2, 3, 6, 7)
)
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE, _DUMP, _APPEND = 0x1, 0x4, 0x200, 0x400, 0x300, 0x800
_ERROR, _DONE = 2, 3
IPV4, DEVICE = 2, 5
"""Families of tables: for packets of IPv4, and for all packets that come in at one device."""
_COMES_IN, _RAW = 0, -300
"""The hook of the rules: all incoming packets, before connections are tracked and addresses translated."""
_HEAD = struct.Struct("=IHHII")
_FAMILY = struct.Struct(">BBH")
_REGISTER = 1
_IS_IPV4 = struct.pack(">H", 0x0800)
_NETWORK, _TRANSPORT = 1, 2
_CARRIES, _SOURCE, _TARGET = (_NETWORK, 9), (_NETWORK, 12), (_NETWORK, 16)
_FROM_PORT, _TO_PORT = (_TRANSPORT, 0), (_TRANSPORT, 2)
"""Positions of the ports in a packet: the header, and the number of bytes into it."""
_CHANCE = (0, 0)
_TCP = bytes([socket.IPPROTO_TCP])
_OF = 100_000
"""Packets to which the number of a rule of loss refers."""
_BURST = 1 << 16
"""Bytes that may come at once beyond a second's rate: one packet, as the host's interface may put several into one."""
_SECONDS = 10.0
CHAIN = "in"


@dataclass(frozen=True)
class Rule:
    """The treatment of packets from ``source`` for ``target``, both IPv4 numbers: all of them vanish.

    With ``ports`` only TCP packets between these ports vanish; with ``loss`` only so many packets in a hundred, by
    chance; with ``rate`` those beyond so many bytes a second. With ``delay`` nothing vanishes: each packet waits so
    many milliseconds, more or less by up to ``jitter``.
    """

    source: str
    target: str
    loss: float | None = None
    rate: int | None = None
    ports: Ports = ANY
    delay: float | None = None
    jitter: float = 0.0


@dataclass(frozen=True)
class RuleCounter:
    """A rule as the kernel lists it, and its counters: the packets and bytes that came, and those that vanished.

    ``passed`` is the number of packets that have waited and gone on, by all rules of the same fault.
    """

    rule: Rule
    came: tuple[int, int]
    vanished: tuple[int, int]
    passed: int = 0


def make(table: str, rules: Sequence[Rule]) -> None:
    """Make a table with these rules. Raises OSError: FileExistsError where a table of that name exists."""
    _make(table, IPV4, b"", (_expressions(rule) for rule in rules))


def add(table: str, rules: Sequence[Rule]) -> None:
    """Add rules to a table that :func:`make` has made. Raises OSError."""
    _all_or_nothing(list(_laid(table, (_expressions(rule) for rule in rules))), IPV4)


def turn_over(table: str, device: str, onto: int, rules: Sequence[Rule]) -> None:
    """Make a table that redirects these rules' packets, where they come in at a device, to another device by its index.

    It matches addresses only. Raises OSError as :func:`make` does.
    """
    _make(table, DEVICE, text(3, device), (_turned_over(rule, onto) for rule in rules))


def remove(table: str, family: int = IPV4) -> bool:
    """Remove a table with all of its rules; False where there is none. Raises OSError."""
    try:
        _all_or_nothing([(_DELETE_TABLE, 0, text(1, table))], family)
    except FileNotFoundError:
        return False
    return True


def tables(beginning: str, family: int = IPV4) -> list[str]:
    """Return the tables whose names begin so. Raises OSError."""
    names = (string(attributes(body)[1]) for body in _listed(_GET_TABLE, b"", family))
    return sorted(name for name in names if name.startswith(beginning))


def list_rules(table: str, family: int = IPV4) -> list[RuleCounter]:
    """Return the rules of a table; none where there is no such table. Raises OSError."""
    messages = (attributes(body) for body in _listed(_GET_RULE, text(1, table), family))
    return [_counted(message[4]) for message in messages if string(message[1]) == table]


# The parts of a rule.


def _make(table: str, family: int, device: bytes, rules: Iterable[Iterator[bytes]]) -> None:
    hook = nested(4, number(1, _COMES_IN) + number(2, _RAW) + device)
    chain = text(1, table) + text(3, CHAIN) + hook + number(5, 1) + text(7, "filter")
    begun = [(_NEW_TABLE, _CREATE | _EXCLUSIVE, text(1, table)), (_NEW_CHAIN, _CREATE, chain)]
    _all_or_nothing([*begun, *_laid(table, rules)], family)


def _laid(table: str, rules: Iterable[Iterator[bytes]]) -> Iterator[tuple[int, int, bytes]]:
    for rule in rules:
        yield _NEW_RULE, _CREATE | _APPEND, text(1, table) + text(2, CHAIN) + nested(4, b"".join(rule))


def _expressions(rule: Rule) -> Iterator[bytes]:
    yield from _between(rule)
    if rule.ports != ANY:
        yield from _equal(_CARRIES, _TCP)
        for place, port in ((_FROM_PORT, rule.ports.source), (_TO_PORT, rule.ports.target)):
            if port:
                yield from _equal(place, struct.pack(">H", port))
    yield _expression("counter")
    if rule.loss is not None:
        yield _expression("numgen", number(1, _REGISTER), number(2, _OF), number(3, 1))
        order = (number(1, _REGISTER), number(2, _REGISTER), number(3, 1), number(4, 4), number(5, 4))
        yield _expression("byteorder", *order)
        yield _compared(2, struct.pack(">I", round(rule.loss * _OF / 100)))
        yield _expression("counter")
    if rule.rate is not None:
        long = (attribute(1, struct.pack(">Q", rule.rate)), attribute(2, struct.pack(">Q", 1)))
        yield _expression("limit", *long, number(3, _BURST), number(4, 1), number(5, 1))
        yield _expression("counter")
    yield _expression("immediate", number(1, 0), nested(2, nested(2, number(1, 0))))


def _turned_over(rule: Rule, onto: int) -> Iterator[bytes]:
    yield _expression("meta", number(1, _REGISTER), number(2, 1))
    yield _compared(0, _IS_IPV4)
    yield from _between(rule)
    yield _expression("counter")
    yield _expression("immediate", number(1, _REGISTER), nested(2, attribute(1, struct.pack("=I", onto))))
    yield _expression("fwd", number(1, _REGISTER))


def _between(rule: Rule) -> Iterator[bytes]:
    for place, address in ((_SOURCE, rule.source), (_TARGET, rule.target)):
        yield from _equal(place, socket.inet_aton(address))


def _equal(place: tuple[int, int], value: bytes) -> Iterator[bytes]:
    header, offset = place
    yield _expression("payload", number(1, _REGISTER), number(2, header), number(3, offset), number(4, len(value)))
    yield _compared(0, value)


def _compared(how: int, value: bytes) -> bytes:
    return _expression("cmp", number(1, _REGISTER), number(2, how), nested(3, attribute(1, value)))


def _expression(name: str, *parts: bytes) -> bytes:
    return nested(1, text(1, name) + nested(2, b"".join(parts)))


def _counted(expressions: bytes) -> RuleCounter:
    """Return a rule of this module's as the kernel lists it."""
    compared: dict[tuple[int, int], bytes] = {}
    counters: list[tuple[int, int]] = []
    rate, place = None, _CHANCE
    for _, element in each(expressions):
        expression = attributes(element)
        name, parts = string(expression[1]), attributes(expression.get(2, b""))
        if name == "payload":
            place = (int.from_bytes(parts[2], "big"), int.from_bytes(parts[3], "big"))
        elif name in ("numgen", "meta"):
            place = _CHANCE
        elif name == "cmp":
            compared[place] = attributes(parts[3])[1]
        elif name == "counter":
            counters.append((int.from_bytes(parts[2], "big"), int.from_bytes(parts[1], "big")))
        elif name == "limit":
            rate = int.from_bytes(parts[1], "big")
    source, target = (socket.inet_ntoa(compared[key]) for key in (_SOURCE, _TARGET))
    ports = Ports(*(int.from_bytes(compared.get(key, b""), "big") for key in (_FROM_PORT, _TO_PORT)))
    chance = compared.get(_CHANCE, b"")
    loss = round(int.from_bytes(chance, "big") * 100 / _OF, 3) if len(chance) == 4 else None
    return RuleCounter(Rule(source, target, loss, rate, ports), counters[0], counters[-1])


# Talking to the kernel.


def _all_or_nothing(acts: Sequence[tuple[int, int, bytes]], family: int) -> None:
    whole = _message(_BEGIN, _REQUEST, 0, b"", 0, subsystem=_TABLES >> 8)
    for place, (kind, flags, body) in enumerate(acts, 1):
        whole += _message(kind, _REQUEST | _ACKNOWLEDGE | flags, place, body, family)
    whole += _message(_END, _REQUEST, len(acts) + 1, b"", 0, subsystem=_TABLES >> 8)
    with _channel() as channel:
        channel.send(whole)
        open_ = set(range(1, len(acts) + 1))
        while open_:
            for kind, place, body in _messages(channel.recv(1 << 16)):
                if kind == _ERROR:
                    _raise(-struct.unpack_from("=i", body)[0])
                    open_.discard(place)


def _listed(kind: int, body: bytes, family: int) -> Iterator[bytes]:
    """Yield all objects of a kind, each without its header."""
    with _channel() as channel:
        channel.send(_message(kind, _REQUEST | _DUMP, 1, body, family))
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


def _raise(refused: int) -> None:
    if refused:
        raise OSError(refused, f"the packet filter (nftables): {os.strerror(refused)}")


def _message(kind: int, flags: int, place: int, body: bytes, family: int, subsystem: int = 0) -> bytes:
    content = _FAMILY.pack(family, 0, subsystem) + body
    return _HEAD.pack(_HEAD.size + len(content), kind, flags, place, 0) + content


def _messages(data: bytes) -> Iterable[tuple[int, int, bytes]]:
    while len(data) >= _HEAD.size:
        size, kind, _, place, _ = _HEAD.unpack_from(data)
        yield kind, place, data[_HEAD.size : size]
        data = data[(size + 3) & ~3 :]
