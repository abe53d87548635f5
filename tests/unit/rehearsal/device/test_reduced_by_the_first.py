"""Of many ranks the first adds up for all: few messages, the same bits, and the same ends as of few ranks."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from chaos.base.wait import wait_for
from chaos.rehearsal.device import links
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.device.peer import frame
from tests.unit.rehearsal.communicators import SECONDS, Group, floats, unprotected

pytestmark = pytest.mark.processes

MANY = 20
"""More than give each its part to every other one."""


def test_many_get_the_bits_of_the_sum_in_the_order_of_ranks_by_two_messages_each(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks, arrays = group.join(MANY), [floats(rank) for rank in range(MANY)]
    sent: list[int] = []

    def counted(rank: int, sequence: int, payload: Any) -> list[memoryview]:
        sent.append(rank)
        return frame(rank, sequence, payload)

    monkeypatch.setattr(links, "frame", counted)
    expected = arrays[0]
    for array in arrays[1:]:
        expected = expected + array
    assert {result.tobytes() for result in group.reduce(ranks, arrays)} == {expected.tobytes()}
    assert sorted(sent) == [0] * (MANY - 1) + list(range(1, MANY))


@pytest.mark.usefixtures("few_are_many")
def test_a_group_of_many_has_a_first_of_its_own(group: Group) -> None:
    ranks = group.join(4)
    part, whole = {1, 2, 3}, [floats(rank) for rank in range(4)]
    futures = [group.pool.submit(ranks[rank].all_reduce, whole[rank], part) for rank in part]
    expected = ((whole[1] + whole[2]) + whole[3]).tobytes()
    assert {future.result(SECONDS).tobytes() for future in futures} == {expected}
    assert len({result.tobytes() for result in group.reduce(ranks, whole)}) == 1


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("shape", [(), (3, 4), (0,)])
def test_shape_and_type_stay(group: Group, shape: tuple[int, ...]) -> None:
    ranks = group.join(3)
    for result in group.reduce(ranks, [numpy.full(shape, rank + 1, "int32") for rank in range(3)]):
        assert (result.shape, result.dtype) == (shape, numpy.dtype("int32"))
        assert numpy.array_equal(result, numpy.full(shape, 6, "int32"))
        result += 1  # it is the rank's own, as of few ranks


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("asking", [0, 2])
def test_one_may_ask_what_the_others_give_and_gives_its_own_then(group: Group, asking: int) -> None:
    ranks, arrays = group.join(4), [floats(rank).reshape(10, 100) for rank in range(4)]
    given = {rank: group.pool.submit(ranks[rank].all_reduce, arrays[rank]) for rank in range(4) if rank != asking}
    answer = group.pool.submit(ranks[asking].expected, arrays[asking]).result(SECONDS)
    assert [array.tobytes() for array in answer] == [arrays[rank].tobytes() for rank in range(4) if rank != asking]
    assert [array.shape for array in answer] == [(10, 100)] * 3
    given[asking] = group.pool.submit(ranks[asking].all_reduce, arrays[asking])
    expected = (((arrays[0] + arrays[1]) + arrays[2]) + arrays[3]).tobytes()
    assert {future.result(SECONDS).tobytes() for future in given.values()} == {expected}
    group.reduce(ranks, arrays)  # and nothing of it is in the way of the next one


@pytest.mark.usefixtures("few_are_many")
def test_a_collective_that_lasts_too_long_says_for_whom_it_waits(group: Group) -> None:
    ranks = group.join(4)
    for communicator in ranks:
        communicator._limit_seconds = 2.0
    said = []
    for rank in (2, 0):  # what rank 2 gives is there before rank 0 begins to wait, however busy the machine is
        with pytest.raises(CommunicationTimeout) as late:
            group.pool.submit(ranks[rank].all_reduce, floats(rank)).result(SECONDS)
        said.append(str(late.value))
    assert said == [
        "rank 2 waited 2 s in all-reduce 1 for rank 0, which adds up for ranks 0-3",
        "rank 0 waited 2 s in all-reduce 1 for ranks 1,3",
    ]


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("gone", [0, 2])
def test_the_end_of_a_rank_does_not_end_a_collective_of_protected_ones(group: Group, gone: int) -> None:
    ranks = group.join(4)
    group.reduce(ranks, [floats(rank) for rank in range(4)])
    others = [rank for rank in range(4) if rank != gone]
    waiting = [group.pool.submit(ranks[rank].all_reduce, floats(rank)) for rank in others]
    ranks[gone].close()
    wait_for(
        "its end",
        lambda: any(communicator._peers[gone].disconnected for communicator in _of(ranks, others)),
        seconds=SECONDS,
    )
    assert not any(future.done() for future in waiting)
    for communicator in _of(ranks, others):
        communicator.abort()
    for future in waiting:
        with pytest.raises(CommunicationAborted):
            future.result(SECONDS)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("gone", [0, 2])
def test_ranks_that_nobody_will_stop_leave_the_dead_soon(group: Group, gone: int) -> None:
    ranks = unprotected(group, 4)

    def reduce_and_leave(communicator: Communicator) -> None:
        try:
            communicator.all_reduce(floats(0))
        finally:
            communicator.close()

    others = [rank for rank in range(4) if rank != gone]
    waiting = [group.pool.submit(reduce_and_leave, communicator) for communicator in _of(ranks, others)]
    ranks[gone].close()
    for future in waiting:
        with pytest.raises(CommunicationTimeout, match=r"waited 0\.2 s in all-reduce 1 .* has gone"):
            future.result(SECONDS)


def _of(ranks: list[Communicator], chosen: list[int]) -> list[Communicator]:
    return [ranks[rank] for rank in chosen]
