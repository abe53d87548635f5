"""A connection over IPv4 at a socket of IPv6 is listed, counted and reset like any other; IPv6 itself is left out."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from chaos.machine.linux.net.connected import connections
from chaos.machine.linux.net.connections import Connection, established, refusal, reset

WHY = refusal()


@dataclass
class Ends:
    """A port on which a socket of IPv6 listens, and connections to it, each with both ends."""

    port: int
    mapped: tuple[socket.socket, socket.socket]
    plain: tuple[socket.socket, socket.socket]
    other: tuple[socket.socket, socket.socket]


class Here:
    """The network of this process."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        return socket.socket(family, kind, protocol)


@pytest.fixture
def ends() -> Iterator[Ends]:
    with ExitStack() as opened:
        try:
            listener = opened.enter_context(
                socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
            )
        except (OSError, ValueError) as error:
            pytest.skip(f"this machine has no sockets of IPv6: {error}")
        port = int(listener.getsockname()[1])

        def connected(address: str, family: int) -> tuple[socket.socket, socket.socket]:
            end = opened.enter_context(socket.socket(family))
            end.connect((address, port))
            return end, opened.enter_context(listener.accept()[0])

        yield Ends(
            port,
            connected("::ffff:127.0.0.1", socket.AF_INET6),
            connected("127.0.0.1", socket.AF_INET),
            connected("::1", socket.AF_INET6),
        )


def of(port: int) -> dict[int, Connection]:
    """The listed connections of the port, by their inodes."""
    listed = [one for one in established(Here()) if port in (one.source_port, one.target_port)]
    return {one.inode: one for one in listed}


def inode(end: socket.socket) -> int:
    return os.fstat(end.fileno()).st_ino


def test_each_end_over_ipv4_is_listed_once_with_plain_addresses(ends: Ends) -> None:
    listed = of(ends.port)
    assert set(listed) == {inode(end) for end in (*ends.mapped, *ends.plain)}
    assert {(one.source, one.target) for one in listed.values()} == {("127.0.0.1", "127.0.0.1")}
    for near, far in (ends.mapped, ends.plain):
        assert listed[inode(near)].is_other_end(listed[inode(far)])


def test_both_count_as_connections_of_the_port(ends: Ends) -> None:
    assert connections("self", {"127.0.0.1"}, ends.port) == 2  # by the ends that have the port


@pytest.mark.skipif(WHY is not None, reason=f"this machine's kernel resets no connections: {WHY}")
def test_only_the_chosen_connection_is_reset(ends: Ends) -> None:
    assert reset(Here(), of(ends.port)[inode(ends.mapped[0])])
    with pytest.raises(ConnectionAbortedError):
        ends.mapped[0].recv(1)
    with pytest.raises(ConnectionResetError):
        ends.mapped[1].recv(1)
    assert set(of(ends.port)) == {inode(end) for end in ends.plain}
    for near, far in (ends.plain, ends.other):
        near.sendall(b"x")
        assert far.recv(1) == b"x"
