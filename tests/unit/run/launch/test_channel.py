"""Nobody but an agent of this run can move the channel, and nobody can stop it from listening."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.run.launch.channel import AtBarrier, Channel, EndpointHello, Hello, Message, RefusedCaller
from chaos.run.launch.setup import write_secret
from chaos.store.directory import RunDirectory, make_private_directory

pytestmark = pytest.mark.processes

SECONDS = 60.0
SECRET = "s" * 64
HELLO = {"message": "hello", "secret": SECRET, "run": "run-1", "attempt": "train", "rank": 2, "pid": 1}
BARRIER = {"message": "barrier", "fault": "kill", "step": 5, "phase": "step.end"}


def line(message: Any) -> bytes:
    return (json.dumps(message) + "\n").encode()


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Channel]:
    channel = Channel(tmp_path / "agents", run="run-1", secret=SECRET, hello_seconds=SECONDS)
    yield channel
    channel.close()


Caller = Callable[..., socket.socket]


@pytest.fixture
def call(tmp_path: Path, channel: Channel) -> Iterator[Caller]:
    """Connect and send bytes; ``hang_up`` ends the sending."""
    sockets: list[socket.socket] = []

    def call(data: bytes = b"", *, hang_up: bool = False) -> socket.socket:
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sockets.append(caller)
        caller.settimeout(SECONDS)
        caller.connect(str(tmp_path / "agents"))
        caller.sendall(data)
        if hang_up:
            caller.shutdown(socket.SHUT_WR)
        return caller

    yield call
    for caller in sockets:
        caller.close()


def take(channel: Channel) -> Message:
    return channel.messages.get(timeout=SECONDS)


def an_agent_is_still_heard(channel: Channel, call: Caller) -> None:
    agent = call(line(HELLO))
    hello = take(channel)
    assert isinstance(hello, Hello)
    hello.connection.answer({"message": "welcome", "armed": []})
    assert agent.recv(1000) == line({"message": "welcome", "armed": []})


def test_an_agent_that_proves_itself_is_known_by_the_kernels_pid(channel: Channel, call: Caller) -> None:
    call(line({**HELLO, "pid": 1}))
    hello = take(channel)
    assert isinstance(hello, Hello)
    assert (hello.attempt, hello.rank, hello.pid) == ("train", 2, os.getpid())


def test_the_pid_is_that_of_the_process_that_connected(channel: Channel, tmp_path: Path) -> None:
    code = (
        "import socket, sys\ncaller = socket.socket(socket.AF_UNIX)\ncaller.connect(sys.argv[1])\n"
        "caller.sendall(sys.argv[2].encode())\ncaller.recv(1)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "agents"), line(HELLO).decode()])
    hello = take(channel)
    assert isinstance(hello, Hello)
    assert hello.pid == process.pid
    hello.connection.close()
    assert process.wait(SECONDS) == 0


SECRETLESS = "did not show this run's secret"
UNINTRODUCED = "did not introduce itself as an agent does"
UNREADABLE = "sent nothing readable"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (line({**HELLO, "secret": "wrong"}), SECRETLESS),
        (line({**HELLO, "secret": SECRET[:-1]}), SECRETLESS),
        (line({**HELLO, "secret": "é" * 64}), SECRETLESS),
        (b'{"message":"hello","secret":"\\ud800","run":"run-1","attempt":"train","rank":2}\n', SECRETLESS),
        (line({**HELLO, "run": "run-2"}), "is of another run"),
        (line({**HELLO, "run": "run-2", "secret": "wrong"}), "is of another run"),
        (line({key: value for key, value in HELLO.items() if key != "secret"}), UNINTRODUCED),
        (line({**HELLO, "secret": None}), UNINTRODUCED),
        (line({**HELLO, "rank": "2"}), UNINTRODUCED),
        (line(BARRIER), UNINTRODUCED),
        (line([HELLO]), UNREADABLE),
        (b"\x00\xff\xfe garbage \x80\n", UNREADABLE),
        (b"GET / HTTP/1.1\r\n\r\n", UNREADABLE),
        (b"[" * 60_000 + b"\n", UNREADABLE),
        (b'{"message":' + b"9" * 60_000 + b"}\n", UNREADABLE),
        (b"\n", UNREADABLE),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else "",
)
def test_a_stranger_is_recorded_and_never_answered(channel: Channel, call: Caller, data: bytes, why: str) -> None:
    refused = call(data)
    stranger_was = take(channel)
    assert isinstance(stranger_was, RefusedCaller)
    assert (stranger_was.pid, stranger_was.what) == (os.getpid(), f"a connection {why}; ignored")
    with contextlib.suppress(ConnectionResetError):  # closed before all that it had sent was read
        assert refused.recv(1000) == b""
    an_agent_is_still_heard(channel, call)


def test_a_line_that_never_ends_is_cut_off(channel: Channel, call: Caller) -> None:
    def send_without_end() -> None:
        try:
            call(b"x" * 10_000_000)
        except OSError as error:
            refused.append(error)

    refused: list[OSError] = []
    sender = threading.Thread(target=send_without_end)
    sender.start()
    assert isinstance(take(channel), RefusedCaller)
    sender.join(SECONDS)
    assert refused
    an_agent_is_still_heard(channel, call)


@pytest.mark.parametrize("said", [b"", line(HELLO)[:-1], line(HELLO)[:10]])
def test_who_hangs_up_before_the_end_of_its_hello_is_a_stranger(channel: Channel, call: Caller, said: bytes) -> None:
    call(said, hang_up=True)
    assert isinstance(take(channel), RefusedCaller)
    an_agent_is_still_heard(channel, call)


@pytest.fixture
def hasty(tmp_path: Path, channel: Channel) -> Iterator[Channel]:
    """A channel that waits for introductions for a twentieth of a second."""
    (tmp_path / "agents").unlink()
    hasty = Channel(tmp_path / "agents", run="run-1", secret=SECRET, hello_seconds=0.05)
    yield hasty
    hasty.close()


def test_who_connects_and_says_nothing_is_a_stranger_after_a_while(hasty: Channel, call: Caller) -> None:
    silent = call()
    assert take(hasty) == RefusedCaller(os.getpid(), "a connection sent nothing readable; ignored")
    assert silent.recv(1) == b""
    hasty._unproven._seconds = SECONDS  # an agent may be late on a busy machine
    an_agent_is_still_heard(hasty, call)


def test_who_introduces_itself_byte_by_byte_has_no_more_time_than_others(hasty: Channel, call: Caller) -> None:
    slow = call()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(10_000):
            slow.send(b" ")
            time.sleep(0.001)
    assert isinstance(take(hasty), RefusedCaller)


def test_an_agent_may_be_silent_for_long_once_it_is_known(channel: Channel, call: Caller) -> None:
    agent = call(line(HELLO))
    assert isinstance(take(channel), Hello)
    assert channel._unproven._limits == {}, "no time runs for it any more"
    agent.sendall(line(BARRIER))
    assert isinstance(take(channel), AtBarrier)


def test_a_rank_at_its_barrier_waits_for_the_answer(channel: Channel, call: Caller) -> None:
    agent = call(line(HELLO) + line(BARRIER))
    hello, held = take(channel), take(channel)
    assert isinstance(hello, Hello)
    assert isinstance(held, AtBarrier)
    assert (held.rank, held.fault, held.step, held.phase) == (2, "kill", 5, "step.end")
    held.connection.answer({"message": "go"})
    assert agent.recv(100) == line({"message": "go"})


@pytest.mark.parametrize("data", [line({"message": "barrier"}), line({**BARRIER, "step": "5"}), b"\xff\n", b"[]\n"])
def test_what_no_agent_sends_is_reported_with_its_rank(channel: Channel, call: Caller, data: bytes) -> None:
    call(line(HELLO) + data)
    assert isinstance(take(channel), Hello)
    assert take(channel) == RefusedCaller(os.getpid(), "rank 2 sent a message that no agent sends; ignored")


def test_the_end_of_an_agent_is_not_reported(channel: Channel, call: Caller) -> None:
    call(line(HELLO) + line(BARRIER)[:-5], hang_up=True)
    assert isinstance(take(channel), Hello)
    an_agent_is_still_heard(channel, call)
    assert channel.messages.empty()


def test_answering_a_rank_that_has_ended_does_nothing(channel: Channel, call: Caller) -> None:
    agent = call(line(HELLO))
    hello = take(channel)
    assert isinstance(hello, Hello)
    agent.close()
    for _ in range(3):
        hello.connection.answer({"message": "go"})
    hello.connection.close()
    hello.connection.close()


def test_strangers_in_crowds_do_not_keep_an_agent_out(channel: Channel, call: Caller) -> None:
    crowd = [call() for _ in range(60)]
    an_agent_is_still_heard(channel, call)
    for refused in crowd:
        refused.close()
    assert [isinstance(take(channel), RefusedCaller) for _ in crowd] == [True] * 60


def test_more_silent_callers_than_there_is_room_for_are_cut_off_the_oldest_first(
    channel: Channel, call: Caller
) -> None:
    def one_more() -> socket.socket | None:
        try:
            return call()
        except BlockingIOError:  # the kernel keeps only so many waiting
            return None

    crowd = [wait_for("room in the backlog", one_more, seconds=SECONDS) for _ in range(300)]
    assert isinstance(take(channel), RefusedCaller)
    assert crowd[0].recv(1) == b""
    an_agent_is_still_heard_among_strangers(channel, call)


def an_agent_is_still_heard_among_strangers(channel: Channel, call: Caller) -> None:
    agent = call(line(HELLO))
    while not isinstance(hello := take(channel), Hello):
        pass
    hello.connection.answer({"message": "welcome", "armed": []})
    assert agent.recv(1000) == line({"message": "welcome", "armed": []})


def test_of_another_user_nobody_is_heard_not_even_with_the_secret(
    channel: Channel, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    call(line(HELLO))
    assert take(channel) == RefusedCaller(os.getpid(), f"a connection is of user {os.getuid()}; ignored")


def test_who_called_while_nobody_looked_is_still_told(channel: Channel, call: Caller) -> None:
    call(line({**HELLO, "run": "run-2"}))
    call(line(HELLO))
    wait_for("both", lambda: channel.messages.qsize() == 2, seconds=SECONDS)
    assert list(channel.refused_callers()) == [RefusedCaller(os.getpid(), "a connection is of another run; ignored")]


def test_closing_lets_everybody_go_and_ends_every_thread(channel: Channel, call: Caller, tmp_path: Path) -> None:
    silent, agent = call(), call(line(HELLO))
    assert isinstance(take(channel), Hello)
    does = {thread: getattr(thread, "_target", None) for thread in threading.enumerate()}
    threads = [thread for thread, target in does.items() if getattr(target, "__self__", None) is channel]
    assert len(threads) == 3
    channel.close()
    channel.close()
    assert (silent.recv(1), agent.recv(1)) == (b"", b"")
    wait_for("end of the threads", lambda: not any(thread.is_alive() for thread in threads), seconds=SECONDS)
    with pytest.raises(OSError):
        call()


def test_only_the_owner_can_reach_the_socket_and_the_secret(run: RunDirectory) -> None:
    before = os.umask(0)
    try:
        private = make_private_directory(run.ledger, run.token)
        secret = write_secret(private)
        channel = Channel(private / "agents", run=run.token, secret=secret)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [private, private / "agents", private / "secret"]}
    assert modes == {private.name: 0o700, "agents": 0o600, "secret": 0o600}
    assert (private / "secret").read_text() == secret
    assert len(secret) == 64
    with pytest.raises(FileExistsError):
        write_secret(private)
    channel.close()
    for path in private.iterdir():
        path.unlink()
    private.rmdir()


ENDPOINT = {**HELLO, "endpoint": "controller", "rank": None}


def test_an_endpoint_introduces_itself_by_the_same_secret(call: Caller, channel: Channel) -> None:
    call(line(ENDPOINT))
    hello = channel.messages.get(timeout=SECONDS)
    assert isinstance(hello, EndpointHello)
    assert (hello.endpoint, hello.rank, hello.pid) == ("controller", None, os.getpid())


@pytest.mark.parametrize(
    "wrong", [{"secret": "t" * 64}, {"endpoint": "other", "rank": 2}, {"run": "run-2"}, {"rank": "2"}]
)
def test_who_is_no_endpoint_of_this_run_is_refused(call: Caller, channel: Channel, wrong: dict[str, Any]) -> None:
    call(line({**ENDPOINT, **wrong}))
    assert isinstance(channel.messages.get(timeout=SECONDS), RefusedCaller)


def test_an_endpoint_cannot_hold_itself_at_a_barrier(call: Caller, channel: Channel) -> None:
    call(line(ENDPOINT) + line(BARRIER))
    assert isinstance(channel.messages.get(timeout=SECONDS), EndpointHello)
    assert isinstance(channel.messages.get(timeout=SECONDS), RefusedCaller)


def test_all_ranks_of_a_large_job_may_call_at_once(tmp_path: Path) -> None:
    """The first of them is not cut off because the others have come before it said a word."""
    channel = Channel(tmp_path / "agents", run="run-1", secret=SECRET, hello_seconds=SECONDS, ranks=200)
    with contextlib.closing(channel), contextlib.ExitStack() as sockets:
        callers = []
        for _ in range(300):
            caller = sockets.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            caller.settimeout(SECONDS)
            caller.connect(str(tmp_path / "agents"))
            callers.append(caller)
        for caller in (callers[-1], callers[0]):
            caller.sendall(line(HELLO))
            assert isinstance(take(channel), Hello)
