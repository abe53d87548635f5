"""TCP connections of a network namespace, which the kernel lists and can reset (sock_diag(7), as ``ss -K`` does).

A program that is ready for IPv6 may have a connection over IPv4 at a socket of IPv6, as the store of PyTorch does
(2.13): the kernel lists it there, with mapped addresses (ipv6(7)), and finds it by either family.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from dataclasses import dataclass

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.echo import OpensSockets
from chaos.machine.linux.net.netlink import ACKNOWLEDGE, DUMP, REQUEST, answers, message, send_request

_SOCK_DIAG = 4
_BY_FAMILY, _DESTROY = 20, 21
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_MAPPED = bytes(10) + b"\xff\xff"
_ESTABLISHED = 1
_ASKED = struct.Struct("=BBBxI")
_ENDS = struct.Struct(">HH16s16s")
_IDENTITY = struct.Struct("=IQ")
"""The interface, and the kernel's cookie: no other connection ever has it while the machine runs."""
_FAMILY_AND_STATE = struct.Struct("=BBxx")
_REST = struct.Struct("=IIIII")


@dataclass(frozen=True)
class Connection:
    """An established connection, as one end sees it."""

    source: str
    source_port: int
    target: str
    target_port: int
    interface: int
    cookie: int
    inode: int

    def is_other_end(self, other: Connection) -> bool:
        """Return whether ``other`` is the same connection, as its other end sees it."""
        ends = (self.source, self.source_port, self.target, self.target_port)
        return ends == (other.target, other.target_port, other.source, other.source_port)

    def __str__(self) -> str:
        return f"{self.source}:{self.source_port} to {self.target}:{self.target_port}"


def established(namespace: OpensSockets) -> list[Connection]:
    """Return the namespace's connections over IPv4. Raises PlatformError."""
    with _channel(namespace) as channel:
        listed = [
            _read(body, mapped=family != socket.AF_INET) for family in _FAMILIES for body in _list(channel, family)
        ]
    return [connection for connection in listed if connection is not None]


def _list(channel: socket.socket, family: int) -> list[bytes]:
    """Return the kernel's descriptions of the connections at sockets of a family; none where it has no such sockets."""
    request = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED)
    channel.send(message(_BY_FAMILY, REQUEST | DUMP, request + bytes(_ENDS.size + _IDENTITY.size)))
    return [body for kind, body in answers(channel) if kind == _BY_FAMILY]


def reset(namespace: OpensSockets, connection: Connection) -> bool:
    """Let the kernel reset a connection of the namespace: both ends get an error.

    Returns whether it has; False for a connection that is gone. Raises PlatformError where the kernel refuses.
    """
    with _channel(namespace) as channel:
        refused = send_request(channel, _DESTROY, REQUEST | ACKNOWLEDGE, _described(connection))
    if refused not in (0, errno.ENOENT):
        raise PlatformError(f"the connection {connection} cannot be reset: {os.strerror(refused)}")
    return refused == 0


def refusal() -> str | None:
    """Return why this machine's kernel resets no connections; None where it does.

    The test request names a connection that cannot exist.
    """
    nobody = Connection("0.0.0.0", 0, "0.0.0.0", 0, 0, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as channel:
            refused = send_request(channel, _DESTROY, REQUEST | ACKNOWLEDGE, _described(nobody))
    except OSError as error:
        return str(error.strerror)
    return None if refused == errno.ENOENT else os.strerror(refused)


def _channel(namespace: OpensSockets) -> socket.socket:
    try:
        return namespace.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
    except OSError as error:
        raise PlatformError(f"the connections of the run's network cannot be listed: {error}") from error


def _described(connection: Connection) -> bytes:
    head = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED)
    ends = _ENDS.pack(
        connection.source_port, connection.target_port, _packed(connection.source), _packed(connection.target)
    )
    return head + ends + _IDENTITY.pack(connection.interface, connection.cookie)


def _read(body: bytes, *, mapped: bool) -> Connection | None:
    """Return a connection over IPv4; None for another one. ``mapped``: it is at a socket of IPv6."""
    source_port, target_port, source, target = _ENDS.unpack_from(body, _FAMILY_AND_STATE.size)
    interface, cookie = _IDENTITY.unpack_from(body, _FAMILY_AND_STATE.size + _ENDS.size)
    inode = _REST.unpack_from(body, _FAMILY_AND_STATE.size + _ENDS.size + _IDENTITY.size)[-1]
    if mapped and not (source.startswith(_MAPPED) and target.startswith(_MAPPED)):
        return None
    ends = [_address(end[len(_MAPPED) :] if mapped else end) for end in (source, target)]
    return Connection(ends[0], source_port, ends[1], target_port, interface, cookie, inode)


def _packed(address: str) -> bytes:
    return ipaddress.IPv4Address(address).packed.ljust(16, b"\0")


def _address(packed: bytes) -> str:
    return str(ipaddress.IPv4Address(packed[:4]))
