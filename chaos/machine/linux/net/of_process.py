"""The TCP connections of one process: the network that it is in, and its own connections there."""

from __future__ import annotations

import os
import re
import socket

from chaos.machine.linux.net.connections import Connection, established
from chaos.machine.linux.net.echo import OpensSockets
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import PROC

_SOCKET = re.compile(r"socket:\[(\d+)\]")


class _Own:
    """The network namespace of this process."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        return socket.socket(family, kind, protocol)


def network_of(identity: ProcessIdentity) -> OpensSockets:
    """Return the network that a process is in. Raises OSError where it has ended, or may not be looked into."""
    same = _network(str(identity.pid)) == _network("self")
    return _Own() if same else Namespace(identity)


def connections_of(identity: ProcessIdentity) -> list[Connection]:
    """Return the established connections (IPv4) of which the process holds an end. Raises OSError, PlatformError."""
    inodes = _sockets(identity.pid)
    return [connection for connection in established(network_of(identity)) if connection.inode in inodes]


def _network(process: str) -> int:
    return (PROC / process / "ns" / "net").stat().st_ino


def _sockets(pid: int) -> set[int]:
    """Return the inodes of a process's open sockets."""
    inodes = set()
    place = PROC / str(pid) / "fd"
    for name in os.listdir(place):  # noqa: PTH208 - names are wanted
        try:
            match = _SOCKET.fullmatch(os.readlink(place / name))  # noqa: PTH115 - it is no path
        except FileNotFoundError:  # closed meanwhile
            continue
        if match:
            inodes.add(int(match[1]))
    return inodes
