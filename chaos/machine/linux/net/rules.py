"""The rules and routes of a network namespace, through the kernel's own interface (rtnetlink(7)).

It answers in microseconds: a fault that lasts a second must not wait for programs to be started.
"""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import socket
import struct
import sys
from dataclasses import dataclass

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.echo import OpensSockets
from chaos.machine.linux.net.netlink import ACKNOWLEDGE, DUMP, REQUEST, answers, message, send_request
from chaos.machine.linux.net.ports import ANY, Ports

_ROUTE = 0
_GET_ROUTE, _NEW_RULE, _DELETE_RULE, _GET_RULE = 26, 32, 33, 34
_EXCLUSIVE, _CREATE = 0x200, 0x400
_TO, _FROM, _PREFERENCE, _PROTOCOL = 1, 2, 6, 21
_CARRIES, _FROM_PORTS, _TO_PORTS = 22, 23, 24
"""Attributes of a rule: the protocol above IP, and ranges of its ports (linux/fib_rules.h, Linux 4.17)."""
_ROUTE_TO, _ROUTE_FROM, _ROUTE_COMES_BY = 1, 2, 3
_ROUTE_CARRIES, _ROUTE_FROM_PORT, _ROUTE_TO_PORT = 27, 28, 29
_BLACKHOLE = 6
_RULE = struct.Struct("=8BI")
"""The head of a rule, and likewise of a route: family, bits of both addresses, and fields that are unused here."""
_ATTRIBUTE = struct.Struct("=HH")
_RANGE = struct.Struct("=HH")
_INDEX_OF = 0x8933
_TCP = bytes([socket.IPPROTO_TCP])


@dataclass(frozen=True)
class Rule:
    """Packets from one address to another vanish.

    ``preference`` and ``protocol`` mark the rule's maker.
    """

    source: str
    target: str
    preference: int
    protocol: int
    ports: Ports = ANY


class Rules:
    """The rules of a namespace. All methods raise PlatformError."""

    def __init__(self, namespace: OpensSockets) -> None:
        self._namespace = namespace

    def add(self, rules: list[Rule]) -> None:
        """Make rules; a rule that exists already stays as it is."""
        with self._channel() as channel:
            for rule in rules:
                flags = REQUEST | ACKNOWLEDGE | _CREATE | _EXCLUSIVE
                if (refused := send_request(channel, _NEW_RULE, flags, _described(rule))) not in (0, errno.EEXIST):
                    raise PlatformError(f"{rule} cannot be made: {os.strerror(refused)}")

    def remove(self, rules: list[Rule]) -> None:
        """Remove rules; a rule that is gone already is no error."""
        with self._channel() as channel:
            for rule in rules:
                refused = send_request(channel, _DELETE_RULE, REQUEST | ACKNOWLEDGE, _described(rule))
                if refused not in (0, errno.ENOENT):
                    raise PlatformError(f"{rule} cannot be removed: {os.strerror(refused)}")

    def listed(self) -> list[Rule]:
        """Return all rules by which packets between two addresses vanish."""
        with self._channel() as channel:
            channel.send(message(_GET_RULE, REQUEST | DUMP, _RULE.pack(socket.AF_INET, *[0] * 7, 0)))
            rules = []
            for kind, body in answers(channel):
                if kind == _NEW_RULE and (rule := _read(body)) is not None:
                    rules.append(rule)
            return rules

    def lets_through(self, source: str, target: str, link: str, ports: Ports = ANY) -> bool:
        """Return the kernel's decision about a packet that comes in at a link: False where it vanishes."""
        with self._channel() as channel:
            interface = fcntl.ioctl(channel, _INDEX_OF, struct.pack("16s16x", link.encode()))
            (index,) = struct.unpack("=16xi12x", interface)
            ends = _attribute(_ROUTE_TO, _packed(target)) + _attribute(_ROUTE_FROM, _packed(source))
            ends += _attribute(_ROUTE_COMES_BY, struct.pack("=I", index))
            if ports != ANY:
                ends += _attribute(_ROUTE_CARRIES, _TCP)
                ends += _attribute(_ROUTE_FROM_PORT, struct.pack(">H", ports.source))
                ends += _attribute(_ROUTE_TO_PORT, struct.pack(">H", ports.target))
            refused = send_request(
                channel, _GET_ROUTE, REQUEST, struct.pack("=8BI", socket.AF_INET, 32, 32, *[0] * 5, 0) + ends
            )
            if refused not in (0, errno.EINVAL):
                raise PlatformError(f"the way from {source} to {target} is not known: {os.strerror(refused)}")
            return refused == 0

    def _channel(self) -> socket.socket:
        try:
            return self._namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, _ROUTE)
        except OSError as error:
            raise PlatformError(f"the rules of the run's network cannot be reached: {error}") from error


def _described(rule: Rule) -> bytes:
    head = _RULE.pack(socket.AF_INET, 32, 32, 0, 0, 0, 0, _BLACKHOLE, 0)
    marks = _attribute(_PREFERENCE, struct.pack("=I", rule.preference)) + _attribute(_PROTOCOL, bytes([rule.protocol]))
    ends = _attribute(_TO, _packed(rule.target)) + _attribute(_FROM, _packed(rule.source))
    if rule.ports != ANY:
        ends += _attribute(_CARRIES, _TCP)
        for kind, port in ((_FROM_PORTS, rule.ports.source), (_TO_PORTS, rule.ports.target)):
            ends += _attribute(kind, _RANGE.pack(port, port)) if port else b""
    return head + ends + marks


def _read(body: bytes) -> Rule | None:
    """Return a rule as the kernel lists it; None for a rule by which nothing vanishes between two addresses."""
    _, to_bits, from_bits, _, _, _, _, action, _ = _RULE.unpack_from(body)
    values: dict[int, bytes] = {}
    rest = body[_RULE.size :]
    while len(rest) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(rest)
        values[kind] = rest[_ATTRIBUTE.size : size]
        rest = rest[(max(size, _ATTRIBUTE.size) + 3) & ~3 :]
    if (action, to_bits, from_bits) != (_BLACKHOLE, 32, 32) or not {_TO, _FROM, _PREFERENCE} <= values.keys():
        return None
    ends = (str(ipaddress.IPv4Address(values[_FROM])), str(ipaddress.IPv4Address(values[_TO])))
    ports = Ports(*(_RANGE.unpack(values.get(kind, b"\0" * 4))[0] for kind in (_FROM_PORTS, _TO_PORTS)))
    return Rule(*ends, int.from_bytes(values[_PREFERENCE], sys.byteorder), values.get(_PROTOCOL, b"\0")[0], ports)


def _attribute(kind: int, value: bytes) -> bytes:
    size = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(size, kind) + value + b"\0" * (-size % 4)


def _packed(address: str) -> bytes:
    return ipaddress.IPv4Address(address).packed
