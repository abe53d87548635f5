"""Of many ranks on one machine each is connected to those alone that it exchanges something with.

What they see of each other's ends, and what they say of it, is as of few ranks, all of which are connected.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from chaos.base.wait import wait_for
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.communicator import Communicator
from tests.unit.rehearsal.communicators import SECONDS, Group, LetLimitPass, floats, unprotected

pytestmark = pytest.mark.processes

MANY = 40


Sockets = Callable[[], int]


@pytest.fixture
def sockets(group: Group, monkeypatch: pytest.MonkeyPatch) -> Sockets:
    """How many sockets are open of those that this test and its ranks have made, and not other threads meanwhile."""
    made: list[socket.socket] = []
    make = socket.socket.__init__

    def noted(self: socket.socket, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        if threading.current_thread().name.startswith(("MainThread", f"{group.pool._thread_name_prefix}_")):
            made.append(self)

    monkeypatch.setattr(socket.socket, "__init__", noted)
    return lambda: sum(one.fileno() != -1 for one in made)


def met(ranks: list[Communicator]) -> list[int]:
    return [sum(peer.met for peer in communicator._peers.values()) for communicator in ranks]


def test_many_are_connected_to_the_first_alone_and_to_others_once_they_need_them(
    group: Group, sockets: Sockets
) -> None:
    ranks, arrays = group.join(MANY), [floats(rank) for rank in range(MANY)]
    expected = arrays[0]
    for array in arrays[1:]:
        expected = expected + array
    assert {result.tobytes() for result in group.reduce(ranks, arrays)} == {expected.tobytes()}
    assert met(ranks) == [MANY - 1] + [1] * (MANY - 1)
    assert sockets() == 2 * (MANY - 1)
    for _ in range(2):  # the second time over the same connections
        some = [group.pool.submit(ranks[rank].all_reduce, arrays[rank], (3, 7, 39)) for rank in (39, 3, 7)]
        assert {future.result(SECONDS).tobytes() for future in some} == {
            ((arrays[3] + arrays[7]) + arrays[39]).tobytes()
        }
        assert [met(ranks)[rank] for rank in (0, 3, 5, 7, 39)] == [MANY - 1, 3, 1, 3, 3]
    sent = group.pool.submit(ranks[12].send, 5, arrays[12])
    assert group.pool.submit(ranks[5].receive, 12, arrays[12]).result(SECONDS).tobytes() == arrays[12].tobytes()
    sent.result(SECONDS)
    assert sockets() == 2 * (MANY - 1 + 3 + 1)
    assert group.strangers == []
    for communicator in ranks:
        communicator.close()
    assert sockets() == 0


@pytest.mark.usefixtures("few_are_many")
def test_a_first_of_part_of_many_meets_its_own(group: Group) -> None:
    ranks, arrays = group.join(5), [floats(rank) for rank in range(5)]
    part = [group.pool.submit(ranks[rank].all_reduce, arrays[rank], (1, 2, 4)) for rank in (1, 2, 4)]
    assert {future.result(SECONDS).tobytes() for future in part} == {((arrays[1] + arrays[2]) + arrays[4]).tobytes()}
    assert met(ranks) == [4, 3, 2, 1, 2]
    assert [path for path in group.directory.iterdir() if not path.name.startswith("here-")] == []


# Joining.


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize(("late", "named"), [(0, "rank 0"), (3, "rank 3")])
def test_each_names_who_never_joins(group: Group, let_limit_pass: LetLimitPass, late: int, named: str) -> None:
    ranks = [group.rank(rank) for rank in range(4) if rank != late]
    futures = [group.pool.submit(communicator.join) for communicator in ranks]
    wait_for("all others", lambda: len(list(group.directory.glob("here-*"))) == 3, seconds=SECONDS)
    wait_for("their meeting", lambda: met(ranks) == ([0, 0, 0] if late == 0 else [2, 1, 1]), seconds=SECONDS)
    let_limit_pass(ranks)
    for communicator, future in zip(ranks, futures, strict=True):
        with pytest.raises(CommunicationTimeout) as waited:
            future.result(SECONDS)
        assert str(waited.value) == f"rank {communicator.rank} waited 300 s for {named} to join the communicator"


@pytest.mark.usefixtures("few_are_many")
def test_nobody_has_joined_before_all_have_and_joining_can_be_told_to_stop(group: Group) -> None:
    ranks = [group.rank(rank) for rank in range(3)]
    joining = [group.pool.submit(communicator.join) for communicator in ranks]
    wait_for("their meeting", lambda: met(ranks) == [2, 1, 1], seconds=SECONDS)
    assert not any(future.done() for future in joining)
    for communicator in ranks:
        communicator.abort()
    for future in joining:
        with pytest.raises(CommunicationAborted, match="the join was stopped by order"):
            future.result(SECONDS)


@pytest.mark.usefixtures("few_are_many")
def test_a_first_that_joins_again_is_met_again(group: Group) -> None:
    first, others = group.rank(0), [group.rank(rank) for rank in (1, 2)]
    joining = [group.pool.submit(communicator.join) for communicator in (first, *others)]
    wait_for("their meeting", lambda: met(others) == [1, 1], seconds=SECONDS)
    first.abort()
    with pytest.raises(CommunicationAborted):
        joining[0].result(SECONDS)
    first.close()
    ranks = [group.rank(0), *others, group.rank(3)]
    for future in [*joining[1:], group.pool.submit(ranks[0].join), group.pool.submit(ranks[3].join)]:
        future.result(SECONDS)
    group.reduce(ranks, [floats(rank) for rank in range(4)])


@pytest.mark.usefixtures("few_are_many")
def test_who_does_not_know_the_secret_joins_nobody(group: Group) -> None:
    ranks = [group.rank(rank, 3) for rank in (0, 1)]
    joining = [group.pool.submit(communicator.join) for communicator in ranks]
    false = group.rank(2, 3, secret=b"another")
    pretending = group.pool.submit(false.join)
    wait_for("the refusal", lambda: group.strangers, seconds=SECONDS)
    false.abort()
    with pytest.raises(CommunicationAborted):
        pretending.result(SECONDS)
    assert group.strangers == ["who listens in place of rank 0 did not prove it; left"]
    assert not any(future.done() for future in joining)
    ranks.append(group.rank(2, 3))
    for future in [*joining, group.pool.submit(ranks[2].join)]:
        future.result(SECONDS)
    group.reduce(ranks, [floats(rank) for rank in range(3)])


# The ends of ranks that have not been met.


@pytest.mark.usefixtures("few_are_many")
def test_a_rank_that_nobody_will_stop_leaves_the_dead_soon_also_where_it_has_never_met_them(group: Group) -> None:
    ranks = unprotected(group, 4)
    ranks[3].close()
    with pytest.raises(CommunicationTimeout, match=r"rank 2 waited 0\.2 s in all-reduce 1 for rank 3.* has gone"):
        group.pool.submit(ranks[2].all_reduce, floats(2), (2, 3)).result(SECONDS)
    assert not ranks[2]._peers[3].met


@pytest.mark.usefixtures("few_are_many")
def test_a_protected_rank_stays_with_the_dead_that_it_has_never_met_until_it_is_told_to_stop(group: Group) -> None:
    ranks = group.join(4)
    ranks[3].close()
    group.pool.submit(ranks[2].send, 3, floats(2)).result(SECONDS)  # as over a connection that has ended
    waiting = group.pool.submit(ranks[1].all_reduce, floats(1), (1, 3))
    wait_for("its end", lambda: ranks[1]._peers[3].disconnected, seconds=SECONDS)
    assert not waiting.done()
    ranks[1].abort()
    with pytest.raises(CommunicationAborted, match="the collective was stopped by order"):
        waiting.result(SECONDS)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("severed", [2, 3])
def test_a_link_that_is_down_meets_nobody_and_both_wait_to_their_limit(group: Group, severed: int) -> None:
    ranks = group.join(4)
    ranks[severed].sever()
    for communicator in ranks:
        communicator._limit_seconds = 2.0
    waiting = [group.pool.submit(ranks[rank].all_reduce, floats(rank), (2, 3)) for rank in (2, 3)]
    for future, rank, other in zip(waiting, (2, 3), (3, 2), strict=True):
        with pytest.raises(CommunicationTimeout) as waited:
            future.result(SECONDS)
        assert str(waited.value) == f"rank {rank} waited 2 s in all-reduce 1 for rank {other}"


@pytest.mark.usefixtures("few_are_many")
def test_who_waits_to_meet_one_takes_meanwhile_what_the_others_send(group: Group) -> None:
    ranks, large = group.join(4), numpy.ones(2_000_000, "float32")
    meeting = group.pool.submit(ranks[1].all_reduce, floats(1), (1, 3))
    wait_for("the meeting", lambda: ranks[1]._peers[3].outgoing, seconds=SECONDS)
    group.pool.submit(ranks[0].send, 1, large).result(SECONDS)
    assert not meeting.done()
    third = group.pool.submit(ranks[3].all_reduce, floats(3), (1, 3))
    assert meeting.result(SECONDS).tobytes() == third.result(SECONDS).tobytes()
    assert (group.pool.submit(ranks[1].receive, 0, large).result(SECONDS) == large).all()


def test_no_rank_waits_in_a_thread_of_its_own(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []  # by whoever starts it: other threads of this process come and go
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(threading.current_thread())
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    ranks = [group.rank(rank, MANY) for rank in range(MANY)]
    assert threading.main_thread() not in started
    for communicator in ranks:
        communicator.close()
