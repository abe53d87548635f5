"""What asks the network works in a process that has more than a thousand descriptors open."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

import pytest

from chaos.machine.linux.net.echo import ask
from chaos.machine.linux.net.port_probe import answering_ends

ABOVE = 1_024
"""The first descriptor that ``select()`` takes no more."""

SECONDS = 30.0


class ThisHost:
    """The network that this process is in."""

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        return socket.socket(family, kind, protocol)


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    """Every descriptor that can be opened now is above those that ``select()`` takes."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * ABOVE:
        pytest.skip(f"fewer than {2 * ABOVE} descriptors may be open here")
    kept = [os.open(os.devnull, os.O_RDONLY)]
    while kept[-1] < ABOVE:
        kept.append(os.dup(kept[0]))
    yield
    for descriptor in kept:
        os.close(descriptor)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may send echoes by itself")
def test_echoes_are_heard() -> None:
    heard = ask(ThisHost(), ["127.0.0.1"], count=3, interval=0.01, wait=SECONDS)
    assert len(heard.milliseconds) == heard.sent == 3


def test_a_port_that_listens_answers_and_one_that_is_closed_does_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ends = [server.getsockname(), closed.getsockname()]
        assert sorted(answering_ends(ThisHost(), ends, wait=SECONDS)) == sorted(ends)
