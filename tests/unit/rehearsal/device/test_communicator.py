"""The communicator gives the same bits every time, outlives a dead peer, and ends when it is told to."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy
import pytest

from chaos.base.wait import wait_for
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.introduction import Caller, Listener
from tests.unit.rehearsal.communicators import SECONDS, SECRET, Group, LetLimitPass, floats, unprotected

pytestmark = pytest.mark.processes


def test_the_sum_is_in_the_order_of_ranks_whatever_arrives_first(group: Group) -> None:
    ranks, arrays = group.join(), [floats(rank) for rank in range(4)]
    expected = ((arrays[0] + arrays[1]) + arrays[2]) + arrays[3]
    assert not numpy.array_equal(expected, arrays[3] + arrays[2] + arrays[1] + arrays[0])
    for number in range(6):
        order = list(range(4))
        random.Random(number).shuffle(order)
        futures: dict[int, Future[Any]] = {}
        for rank in order:
            futures[rank] = group.pool.submit(ranks[rank].all_reduce, arrays[rank])
        for future in futures.values():
            result = future.result(SECONDS)
            assert result.dtype == numpy.float32
            assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0,), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_shape_and_type_stay(group: Group, shape: tuple[int, ...], dtype: str) -> None:
    ranks = group.join(3)
    arrays = [numpy.full(shape, rank + 1, dtype) for rank in range(3)]
    for result in group.reduce(ranks, arrays):
        assert (result.shape, result.dtype) == (shape, numpy.dtype(dtype))
        assert numpy.array_equal(result, numpy.full(shape, 6, dtype))
    assert [array.flat[0] for array in arrays if array.size] == ([1, 2, 3] if arrays[0].size else [])


def test_arrays_that_are_not_contiguous_are_summed(group: Group) -> None:
    ranks = group.join(2)
    matrix = numpy.arange(12, dtype="float32").reshape(3, 4)
    assert numpy.array_equal(group.reduce(ranks, [matrix.T, matrix.T])[0], 2 * matrix.T)


def test_one_rank_alone_is_a_communicator_too(group: Group) -> None:
    (alone,) = group.join(1)
    assert alone.all_reduce(numpy.asarray([1.5], "float32")) == [1.5]


def test_large_arrays_do_not_deadlock(group: Group) -> None:
    ranks, size = group.join(), 2_000_000
    arrays = [numpy.full(size, rank, "float32") for rank in range(4)]
    for _ in range(2):
        for result in group.reduce(ranks, arrays):
            assert result.shape == (size,)
            assert (result == 6).all()


def test_a_fast_rank_may_be_a_collective_ahead(group: Group) -> None:
    ranks = group.join(2)
    first = [group.pool.submit(ranks[0].all_reduce, numpy.asarray([0.0], "float32"))]
    for number in range(3):
        assert ranks[1].all_reduce(numpy.asarray([10.0 * number], "float32")).shape == (1,)
        assert first[-1].result(SECONDS) == [11.0 * number]
        first.append(group.pool.submit(ranks[0].all_reduce, numpy.asarray([number + 1.0], "float32")))
    ranks[0].abort()
    with pytest.raises(CommunicationAborted):
        first[-1].result(SECONDS)


# Joining.


def test_nothing_is_left_in_the_directory_once_all_have_joined(group: Group, tmp_path: Path) -> None:
    group.join()
    assert list(tmp_path.iterdir()) == []


def test_ranks_can_join_again_where_one_was_ended_while_it_joined(group: Group, tmp_path: Path) -> None:
    code = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    for rank in range(4):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / f"rank-{rank}")], check=True)
    group.reduce(group.join(), [floats(rank) for rank in range(4)])
    assert list(tmp_path.iterdir()) == []


def test_who_never_joins_is_named_and_nothing_is_left(
    group: Group, tmp_path: Path, let_limit_pass: LetLimitPass
) -> None:
    ranks = [group.rank(rank) for rank in (0, 2)]
    futures = [group.pool.submit(communicator.join) for communicator in ranks]
    wait_for("their meeting", lambda: ranks[0]._peers[2].met and ranks[1]._peers[0].met, seconds=SECONDS)
    let_limit_pass(ranks)
    for communicator, future in zip(ranks, futures, strict=True):
        with pytest.raises(CommunicationTimeout) as late:
            future.result(SECONDS)
        assert (
            str(late.value) == f"rank {communicator.rank} waited 300 s for ranks 1,3 (2 of 4) to join the communicator"
        )
    assert list(tmp_path.iterdir()) == []


def test_joining_can_be_told_to_stop(group: Group) -> None:
    alone = group.rank(0)
    joining = group.pool.submit(alone.join)
    alone.abort()
    with pytest.raises(CommunicationAborted, match="the join was stopped by order"):
        joining.result(SECONDS)


def call(path: Path, data: bytes) -> socket.socket:
    """Connect to a rank that is joining, and say something."""
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def connected() -> bool:
        try:
            caller.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    wait_for("listener", connected, seconds=SECONDS)
    caller.sendall(data)
    return caller


@pytest.mark.parametrize("data", [b"", b"x" * 40, b"x" * 10, b"\0" * 5000], ids=["nothing", "hello", "part", "much"])
@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_stranger_holds_up_nobody_and_is_reported(group: Group, tmp_path: Path, data: bytes, hangs_up: bool) -> None:
    ranks = [group.rank(rank) for rank in range(4)]
    first = group.pool.submit(ranks[0].join)
    unproven = call(tmp_path / "rank-0", data)
    if hangs_up:
        unproven.close()
    for joined in [group.pool.submit(communicator.join) for communicator in ranks[1:]]:
        joined.result(SECONDS)
    first.result(SECONDS)
    group.reduce(ranks, [floats(rank) for rank in range(4)])
    unproven.close()
    (told,) = group.strangers
    assert told.startswith("a connection that says it is rank ")
    assert told.endswith(" did not prove it; dropped")


def test_a_rank_of_another_run_is_a_stranger_and_the_real_one_still_joins(group: Group, tmp_path: Path) -> None:
    first = group.rank(0, 2)
    joining = group.pool.submit(first.join)
    wait_for("listener", lambda: (tmp_path / "rank-0").exists(), seconds=SECONDS)
    false = group.rank(1, 2, secret=b"another")
    pretending = group.pool.submit(false.join)
    wait_for("the refusal", lambda: group.strangers, seconds=SECONDS)
    threading.Event().wait(0.5)
    false.abort()
    with pytest.raises(CommunicationAborted, match="the join was stopped by order"):
        pretending.result(SECONDS)
    # Neither has proved itself to the other, and it has asked once only.
    assert group.strangers == ["who listens in place of rank 0 did not prove it; left"]
    real = group.rank(1, 2)
    group.pool.submit(real.join).result(SECONDS)
    joining.result(SECONDS)
    results = group.reduce([first, real], [numpy.ones(3, "float32")] * 2)
    assert all((result == 2).all() for result in results)
    assert len(group.strangers) == 1


def test_what_was_overheard_at_a_meeting_takes_nobodys_place_at_the_next(group: Group, tmp_path: Path) -> None:
    first = group.rank(0, 2)
    joining = group.pool.submit(first.join)
    listener, caller = Listener(SECRET, 0, range(2)), Caller(SECRET, 1, 0, 2)  # of an earlier meeting
    hello, proof = caller.hello, caller.hear(listener.hear(caller.hello))
    listener.hear(proof)
    assert listener.met == 1
    unproven = call(tmp_path / "rank-0", hello)
    assert len(unproven.recv(48, socket.MSG_WAITALL)) == 48
    unproven.sendall(proof)
    assert unproven.recv(1) == b""
    unproven.close()
    assert group.strangers == ["a connection that says it is rank 1 of 2 did not prove it; dropped"]
    group.pool.submit(group.rank(1, 2).join).result(SECONDS)
    joining.result(SECONDS)


def test_who_listens_in_a_ranks_place_is_left_for_the_rank_itself(group: Group, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as false:
        false.bind(str(tmp_path / "rank-0"))
        false.listen()
        joining = group.pool.submit(group.rank(1, 2).join)
        connection, _ = false.accept()
        connection.sendall(Listener(b"another", 0, range(2)).hear(connection.recv(24, socket.MSG_WAITALL)))
        assert connection.recv(32) == b""  # it proves itself to nobody who has not
        connection.close()
    group.pool.submit(group.rank(0, 2).join).result(SECONDS)
    joining.result(SECONDS)
    assert group.strangers == ["who listens in place of rank 0 did not prove it; left"]


# Aborts and deaths.


def test_abort_ends_a_collective_at_once_and_refuses_further_ones(group: Group) -> None:
    ranks = group.join()
    waiting = group.pool.submit(ranks[0].all_reduce, floats(0))
    wait_for("the collective", lambda: waiting.running(), seconds=SECONDS)
    ranks[0].abort()
    with pytest.raises(CommunicationAborted):
        waiting.result(SECONDS)
    with pytest.raises(CommunicationAborted):
        ranks[0].all_reduce(floats(0))


def test_a_collective_that_lasts_too_long_names_the_ranks_that_did_not_come(group: Group) -> None:
    ranks = group.join()
    for communicator in ranks:
        communicator._limit_seconds = 2.0
    for rank, missing in ((2, "0-1,3"), (0, "1,3")):  # what rank 2 gives is there before rank 0 begins to wait
        with pytest.raises(CommunicationTimeout) as late:
            group.pool.submit(ranks[rank].all_reduce, floats(rank)).result(SECONDS)
        assert str(late.value) == f"rank {rank} waited 2 s in all-reduce 1 for ranks {missing}"


PEER = """
import sys, threading
import numpy
from chaos.rehearsal.device.communicator import Communicator
rank, ranks, directory, collectives = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
one = Communicator(rank, range(ranks), directory, b"s3cret", limit_seconds=300, on_refused=print)
one.join()
for number in range(collectives):
    one.all_reduce(numpy.full(1000, rank, "float32"))
print("done", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a rank in a process of its own that joins, takes part in some collectives, and waits."""
    started: list[subprocess.Popen[str]] = []

    def peer(rank: int, ranks: int, collectives: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PEER, str(rank), str(ranks), str(tmp_path), str(collectives)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield peer
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_the_end_of_a_peer_does_not_end_a_collective(
    group: Group, peer: Callable[..., subprocess.Popen[str]], end: signal.Signals
) -> None:
    process = peer(2, 3, 1)
    ranks = [group.rank(rank, 3) for rank in range(2)]
    for joined in [group.pool.submit(communicator.join) for communicator in ranks]:
        joined.result(SECONDS)
    first = group.reduce(ranks, [numpy.full(1000, rank, "float32") for rank in range(2)])
    assert (first[0] == 3).all()
    assert process.stdout is not None
    assert process.stdout.readline() == "done\n"
    process.send_signal(end)
    if end is signal.SIGKILL:
        process.wait(SECONDS)
    waiting = [group.pool.submit(communicator.all_reduce, numpy.zeros(1000, "float32")) for communicator in ranks]
    for future in waiting:
        with pytest.raises(TimeoutError):
            future.result(0.2)
    for communicator in ranks:
        communicator.abort()
    for future in waiting:
        with pytest.raises(CommunicationAborted):
            future.result(SECONDS)


def test_what_a_peer_sent_before_its_death_counts(group: Group) -> None:
    """It gave its part of the collective, and was gone when this rank wanted to send its own."""
    communicator, other = group.join(2)
    communicator._peers[1].socket.setblocking(True)
    given = group.pool.submit(other.all_reduce, numpy.ones(1000, "float32"))
    inbox = communicator._peers[1].socket
    wait_for("the part", lambda: len(inbox.recv(10_000, socket.MSG_PEEK)) > 4000, seconds=SECONDS)
    other.abort()
    with pytest.raises(CommunicationAborted):
        given.result(SECONDS)
    other._peers[0].socket.close()
    assert (communicator.all_reduce(numpy.ones(1000, "float32")) == 2).all()


def test_a_frame_of_something_else_is_an_error_with_the_ranks_name(group: Group) -> None:
    communicator, other = group.join(2)
    other._peers[0].socket.setblocking(True)
    other._peers[0].socket.sendall(b"GET / HTTP/1.1\r\n" + bytes(100))
    with pytest.raises(RuntimeError, match="rank 1 sent a frame that is not of this communicator"):
        communicator.all_reduce(floats(0))


def test_any_thread_may_abort_and_many_may(group: Group) -> None:
    ranks = group.join(2)
    waiting = group.pool.submit(ranks[0].all_reduce, floats(0))
    threads = [threading.Thread(target=ranks[0].abort) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    with pytest.raises(CommunicationAborted):
        waiting.result(SECONDS)


def test_a_rank_that_nobody_will_stop_leaves_the_dead_soon(group: Group) -> None:
    ranks = unprotected(group, 2)
    ranks[1].close()
    with pytest.raises(CommunicationTimeout, match=r"rank 0 waited 0\.2 s in all-reduce 1 .* has gone"):
        ranks[0].all_reduce(floats(0))


def test_one_that_has_given_its_part_before_it_went_keeps_nobody_from_waiting_for_the_slow(group: Group) -> None:
    ranks = unprotected(group, 3)
    waiting, leaving = (group.pool.submit(ranks[number].all_reduce, floats(0)) for number in (0, 2))
    peer = ranks[0]._peers[2]
    wait_for("its part", lambda: peer.arrived, seconds=SECONDS)
    ranks[2].abort()
    with pytest.raises(CommunicationAborted):
        leaving.result(SECONDS)
    ranks[2].close()
    wait_for("its end", lambda: peer.disconnected and time.monotonic() > peer.gone_at + 0.5, seconds=SECONDS)
    assert not waiting.done()
    ranks[0].abort()
    with pytest.raises(CommunicationAborted):
        waiting.result(SECONDS)
