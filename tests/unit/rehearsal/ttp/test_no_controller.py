"""A controller that is not there, does not answer, or is none: a clear error with its address and what to do."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.rehearsal.ttp import connect
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.processor import Processor
from chaos.rehearsal.ttp.status import UNKNOWN
from chaos.rehearsal.ttp.timings import PROFILES
from chaos.rehearsal.ttp.trust import Trust
from chaos.rehearsal.ttp.wire import Link
from tests.unit.rehearsal.conftest import SECONDS, Start

pytestmark = pytest.mark.processes

SECRET = b"s3cret"
LIMIT = 600.0
PATIENT = replace(PROFILES["fast"], pre_lock=LIMIT, action=LIMIT, connect=LIMIT)
"""Limits that nothing here meets, however busy the machine is."""

HASTY = replace(PATIENT, action=1.0)
"""Timings with which an answer to a report is waited for a second."""

Serve = Callable[[Callable[[socket.socket], None]], tuple[str, int]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Listen, and do with the first connection what a test says; returns the address."""
    listener = socket.socket()
    connections: list[socket.socket] = []

    def serve(answer: Callable[[socket.socket], None]) -> tuple[str, int]:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def accept() -> None:
            connection, _ = listener.accept()
            connections.append(connection)
            answer(connection)

        threading.Thread(target=accept, daemon=True).start()
        address: tuple[str, int] = listener.getsockname()
        return address

    yield serve
    for one in [listener, *connections]:
        one.close()


def register(address: tuple[str, int], seconds: float = LIMIT, answer_seconds: float = LIMIT) -> None:
    connect.register(
        2, address, run="r", secret=SECRET, seconds=seconds, answer_seconds=answer_seconds, wait=time.sleep
    )


def test_nobody_listens(serve: Serve) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = closed.getsockname()
    said = rf"rank 2: no controller at 127.0.0.1:{address[1]} within 0.2 s: .*refused; is the process alive"
    with pytest.raises(ConnectionError, match=said):
        register(address, 0.2)


def test_a_controller_that_never_answers_is_named_soon(serve: Serve) -> None:
    address = serve(lambda connection: None)
    began = time.monotonic()
    said = rf"rank 2: the controller at 127.0.0.1:{address[1]} took the connection and did not answer for 1 s; see"
    with pytest.raises(ConnectionError, match=said):
        register(address, answer_seconds=1.0)
    assert time.monotonic() - began < LIMIT / 2


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\2{}", b""])
def test_another_program_on_the_port_is_not_taken_for_it(serve: Serve, words: bytes) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(words)
        connection.close()

    address = serve(answer)
    said = rf"127.0.0.1:{address[1]} is not the controller of this run; another program listens on that port, so end it"
    with pytest.raises(ConnectionError, match=said):
        register(address)


def test_a_controller_that_never_takes_the_replica_groups_is_named(serve: Serve) -> None:
    def answer(connection: socket.socket) -> None:
        link = Link(connection)
        Trust("r", SECRET).challenge(link)
        link.send({"message": "registered"})

    address = serve(answer)
    processor = Processor(2, run="r", secret=SECRET, timings=HASTY, log=TtpLog(None), handlers={})
    processor.start(*address)
    said = rf"rank 2: the controller at 127.0.0.1:{address[1]} has not answered to the report of replica group \[0, 2\]"
    with pytest.raises(ConnectionError, match=said):
        processor.report_replicas([0, 2])
    processor.leave()


def closes_at_once(connection: socket.socket) -> None:
    """A controller whose rank has trained to its end before the others have reported."""
    link = Link(connection)
    Trust("r", SECRET).challenge(link)
    link.send({"message": "registered"})
    link.send({"message": "closed"})


def test_no_rank_waits_for_a_controller_whose_rank_has_trained_to_its_end(serve: Serve) -> None:
    processor = Processor(2, run="r", secret=SECRET, timings=PATIENT, log=TtpLog(None), handlers={})
    processor.start(*serve(closes_at_once))
    began = time.monotonic()
    processor.report_replicas([0, 2])
    assert time.monotonic() - began < LIMIT / 2
    processor.leave()


def test_an_unknown_error_after_the_controller_has_closed_ends_the_rank(serve: Serve) -> None:
    ended = threading.Event()
    handlers = {"exit": (lambda *_: ended.set(), None)}
    processor = Processor(2, run="r", secret=SECRET, timings=HASTY, log=TtpLog(None), handlers=handlers)
    processor.start(*serve(closes_at_once))
    threading.Thread(target=processor.report_error, args=(UNKNOWN,), daemon=True).start()
    assert ended.wait(SECONDS)
    processor.leave()


def test_a_launch_does_not_begin_without_its_controller(ranks: Start, tmp_path: Path) -> None:
    """The port is in use: the launcher is never started, and the code is that of a controller that cannot start."""
    job = ranks(ranks=0, steps=1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", job.port))
        other.listen()
        command = (sys.executable, "-m", "chaos.rehearsal.ttp.outside", "4", "127.0.0.1", str(job.port))
        begun = tmp_path / "begun"
        outside: subprocess.Popen[bytes] = job.start(*command, "/usr/bin/touch", str(begun))
        assert outside.wait(SECONDS) == 2
    assert not begun.exists()
    assert f"mindio_ttp: the controller cannot listen on 127.0.0.1:{job.port}: [Errno 98]" in job.output()
