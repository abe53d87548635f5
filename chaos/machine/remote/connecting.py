"""The helper's view of its node's connections with other nodes of the run, and the reset of the run's connections."""

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
from chaos.machine.linux.net.port_probe import answering_ends
from chaos.machine.linux.procfs import PROC

_SEGMENT = struct.Struct(">HHIIBBHHH")
_OVER = struct.Struct(">4s4sBBH")
_LENGTH, _RESETS = 5 << 4, 0x04
_DISCARD = 9
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class ConnectionRequests:
    """The part of the remote helper that handles connections; arguments and results are JSON."""

    def __init__(self, run: str) -> None:
        self._own_run = run

    def echo(self, addresses: list[str], count: int, interval: float, wait: float) -> dict[str, Any]:
        """Return the result of echo requests from here (:func:`chaos.machine.linux.net.echo.ask`)."""
        return asdict(ask(OWN, addresses, count=count, interval=interval, wait=wait))

    def attempt(self, own_address: str, address: str, port: int, wait: float) -> bool:
        """Return whether a TCP port answers to this node, by a connection or a refusal. No data is sent to it."""
        return bool(answering_ends(OWN, [(address, port)], wait=wait, source=own_address))

    def send_from(self, own_address: str, port: int, addresses: list[str]) -> None:
        """Send each address one packet of TCP from a port of this node: the end of a connection that does not exist.

        It goes to the discard port (RFC 863), and nobody answers it (RFC 9293, 3.10.7.1).
        """
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as channel:
            channel.bind((own_address, 0))
            for address in addresses:
                channel.sendto(_end(own_address, port, address), (address, 0))

    def connected(self, own_address: str, others: list[str], of_run: bool) -> list[dict[str, Any]]:
        """Return the connections between this node's address and the others' addresses.

        With ``of_run`` only connections of the run's processes.
        """
        connections = [
            connection
            for connection in established(OWN)
            if connection.source == own_address and connection.target in others
        ]
        inodes = self._sockets() if of_run else {connection.inode for connection in connections}
        return [asdict(connection) for connection in connections if connection.inode in inodes]

    def reset(self, connection: dict[str, Any]) -> bool:
        """Let the kernel reset a connection, and notify both ends.

        Returns whether it has: False for a connection that is gone. A connection of no process of the run is refused.
        """
        target = Connection(**connection)
        if target.inode not in self._sockets():
            if target not in established(OWN):
                return False
            raise ValueError(f"no process of the run has the connection {target}; it was left alone")
        return reset(OWN, target)

    def _sockets(self) -> Collection[int]:
        """Return the inodes of the run's sockets here."""
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
            match = _SOCKET.fullmatch(os.readlink(place / name))  # noqa: PTH115 - no path
        except OSError:
            continue
        if match is not None:
            yield int(match[1])


def _end(own_address: str, port: int, address: str) -> bytes:
    bare = (port, _DISCARD, 0, 0, _LENGTH, _RESETS, 0)
    over = _OVER.pack(socket.inet_aton(own_address), socket.inet_aton(address), 0, socket.IPPROTO_TCP, _SEGMENT.size)
    total = sum(struct.unpack(">16H", over + _SEGMENT.pack(*bare, 0, 0)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return _SEGMENT.pack(*bare, ~total & 0xFFFF, 0)
