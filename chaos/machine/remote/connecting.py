"""What the helper sees of the connections of its node with others of the run, and how it resets those of the run."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.net.connections import Connection, established, reset
from chaos.machine.linux.net.echo import ask
from chaos.machine.linux.net.port_probe import answered
from chaos.machine.linux.procfs import PROC

_SEGMENT = struct.Struct(">HHIIBBHHH")
_OVER = struct.Struct(">4s4sBBH")
_LENGTH, _RESETS = 5 << 4, 0x04
_DISCARD = 9
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class ConnectionRequests:
    """The part of the remote helper that is about connections; arguments and results are JSON."""

    def __init__(self, run: str) -> None:
        self._own_run = run

    def echo(self, addresses: list[str], count: int, interval: float, wait: float) -> dict[str, Any]:
        """What comes of echo requests from here (:func:`chaos.machine.linux.net.echo.ask`)."""
        return asdict(ask(OWN, addresses, count=count, interval=interval, wait=wait))

    def attempt(self, own: str, address: str, port: int, wait: float) -> bool:
        """Return whether a TCP port answers to this node, by a connection or a refusal. Nothing is said to it."""
        return bool(answered(OWN, [(address, port)], wait=wait, source=own))

    def send_from(self, own: str, port: int, addresses: list[str]) -> None:
        """Send each address one packet of TCP from a port of this node: the end of a connection that there is not.

        It goes to a port for what is to be thrown away (RFC 863), and nobody answers it (RFC 9293, 3.10.7.1).
        """
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as channel:
            channel.bind((own, 0))
            for address in addresses:
                channel.sendto(_end(own, port, address), (address, 0))

    def connected(self, own: str, others: list[str], of_run: bool) -> list[dict[str, Any]]:
        """The connections between this node's address and those of others; ``of_run``: that its processes have."""
        found = [
            connection for connection in established(OWN) if connection.source == own and connection.target in others
        ]
        inodes = self._sockets() if of_run else {connection.inode for connection in found}
        return [asdict(connection) for connection in found if connection.inode in inodes]

    def reset(self, connection: dict[str, Any]) -> bool:
        """Let the kernel reset a connection, which both ends are told. Whether it has: False for one that is not there
        any more. One that no process of the run has is refused."""
        wanted = Connection(**connection)
        if wanted.inode not in self._sockets():
            if wanted not in established(OWN):
                return False
            raise ValueError(f"no process of the run has the connection {wanted}; it was left alone")
        return reset(OWN, wanted)

    def _sockets(self) -> Collection[int]:
        """Return the inodes of the sockets that the run's processes have here."""
        return {inode for process in find_run_processes(self._own_run) for inode in _sockets_of(process.pid)}


class _Own:
    """The network namespace that the remote helper is in."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a socket in it."""
        return socket.socket(family, kind, protocol)


OWN = _Own()


def _sockets_of(pid: int) -> Iterator[int]:
    place = PROC / str(pid) / "fd"
    try:
        names: Sequence[str] = os.listdir(place)  # noqa: PTH208 - names only
    except OSError:  # it has ended
        return
    for name in names:
        try:
            found = _SOCKET.fullmatch(os.readlink(place / name))  # noqa: PTH115 - no path
        except OSError:
            continue
        if found is not None:
            yield int(found[1])


def _end(own: str, port: int, address: str) -> bytes:
    bare = (port, _DISCARD, 0, 0, _LENGTH, _RESETS, 0)
    over = _OVER.pack(socket.inet_aton(own), socket.inet_aton(address), 0, socket.IPPROTO_TCP, _SEGMENT.size)
    total = sum(struct.unpack(">16H", over + _SEGMENT.pack(*bare, 0, 0)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return _SEGMENT.pack(*bare, ~total & 0xFFFF, 0)
