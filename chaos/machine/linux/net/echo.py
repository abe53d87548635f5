"""Whether addresses answer as seen from a network namespace, and how soon: ICMP echo (RFC 792)."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

_REQUEST, _REPLY = 8, 0
_HEADER = struct.Struct(">BBHHH")


@dataclass
class Echoes:
    """The answers to the requests to all addresses.

    ``milliseconds`` has the round trip of each answered request.
    """

    sent: int = 0
    milliseconds: list[float] = field(default_factory=list)

    @property
    def answer_count(self) -> int:
        """The number of answered requests."""
        return len(self.milliseconds)


def added(echoes: Iterable[Echoes]) -> Echoes:
    """Return the sum of several results."""
    whole = Echoes()
    for reply in echoes:
        whole.sent += reply.sent
        whole.milliseconds += reply.milliseconds
    return whole


class OpensSockets(Protocol):
    """A network namespace."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a socket in it. Raises PlatformError, OSError."""


def ask(
    namespace: OpensSockets, addresses: Iterable[str], *, count: int, interval: float = 0.0, wait: float = 0.2
) -> Echoes:
    """Ask each address ``count`` times, every ``interval`` seconds.

    It ends when no answer comes for ``wait`` seconds. Raises PlatformError where the namespace has gone, OSError.
    """
    mark = os.getpid() & 0xFFFF
    targets = list(addresses)
    echoes = Echoes()
    sent_at: dict[int, float] = {}
    with namespace.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as channel:
        channel.setblocking(False)
        for turn in range(count):
            for place, target in enumerate(targets):
                number = (turn * len(targets) + place) & 0xFFFF
                sent_at[number] = time.monotonic()
                channel.sendto(_request(mark, number), (target, 0))
                echoes.sent += 1
            last = turn == count - 1
            _hear(channel, mark, sent_at, echoes, wait if last else interval, again=last)
    return echoes


def _request(mark: int, number: int) -> bytes:
    head = _HEADER.pack(_REQUEST, 0, 0, mark, number)
    total = sum(struct.unpack(">4H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return _HEADER.pack(_REQUEST, 0, ~total & 0xFFFF, mark, number)


def _hear(
    channel: socket.socket, mark: int, sent_at: dict[int, float], echoes: Echoes, seconds: float, *, again: bool
) -> None:
    """Record answers for so long, with ``again`` counted anew from each, or until no more are expected."""
    until = time.monotonic() + seconds
    arrival = select.poll()  # select() takes no descriptor above 1,023
    arrival.register(channel, select.POLLIN)
    while sent_at and (left := until - time.monotonic()) > 0:
        if not arrival.poll(left * 1000):
            return
        packet = channel.recv(2048)
        at = time.monotonic()
        body = packet[(packet[0] & 15) * 4 :]
        if len(body) < _HEADER.size:
            continue
        kind, _, _, owner, number = _HEADER.unpack_from(body)
        if (kind, owner) == (_REPLY, mark) and number in sent_at:
            echoes.milliseconds.append(round((at - sent_at.pop(number)) * 1000, 3))
            if again:
                until = at + seconds
