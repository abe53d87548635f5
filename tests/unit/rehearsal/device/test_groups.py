"""Groups are what their creators said, and their collectives are those of their members alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from chaos.rehearsal.device.communication_errors import CommunicationAborted
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.device.groups import Groups

SECONDS = 30.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def ranks(tmp_path: Path, pool: ThreadPoolExecutor) -> list[Communicator]:
    """Four ranks that have joined."""
    made = [
        Communicator(rank, range(4), str(tmp_path), b"s3cret", limit_seconds=SECONDS, on_refused=print)
        for rank in range(4)
    ]
    list(pool.map(lambda communicator: communicator.join(), made))
    return made


def one(value: float) -> Any:
    return numpy.asarray([value], "float32")


def test_a_group_sums_over_its_members_alone(ranks: list[Communicator], pool: ThreadPoolExecutor) -> None:
    groups = {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}
    sums = list(pool.map(lambda peer: float(peer.all_reduce(one(10**peer.rank), groups[peer.rank])[0]), ranks))
    assert sums == [101, 1010, 101, 1010]


def test_groups_that_overlap_count_their_collectives_apart(ranks: list[Communicator], pool: ThreadPoolExecutor) -> None:
    """Rank 0 is ahead in one group while its partner in the other is not."""

    def work(peer: Communicator) -> list[float]:
        pair = (0, 1) if peer.rank < 2 else (2, 3)
        other = (0, 2) if peer.rank % 2 == 0 else (1, 3)
        return [float(peer.all_reduce(one(10**peer.rank), group)[0]) for group in (pair, pair, None, other, pair)]

    low, high = 11.0, 1100.0
    assert list(pool.map(work, ranks)) == [
        [low, low, 1111, 101, low],
        [low, low, 1111, 1010, low],
        [high, high, 1111, 101, high],
        [high, high, 1111, 1010, high],
    ]


def test_a_group_blocks_for_its_member_and_ends_when_told_to(
    ranks: list[Communicator], pool: ThreadPoolExecutor
) -> None:
    blocked = pool.submit(ranks[0].all_reduce, one(1), (0, 2))
    others = [pool.submit(ranks[rank].all_reduce, one(1), (1, 3)) for rank in (1, 3)]
    assert [float(other.result(SECONDS)[0]) for other in others] == [2, 2]
    assert not blocked.done()
    ranks[0].abort()
    with pytest.raises(CommunicationAborted):
        blocked.result(SECONDS)


@pytest.mark.parametrize("group", [(1, 2), (0, 4), ()])
def test_a_rank_reduces_only_over_a_group_that_it_is_in(ranks: list[Communicator], group: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="rank 0 cannot reduce over"):
        ranks[0].all_reduce(one(1), group)


def test_names_stand_for_ranks() -> None:
    functions = Groups(2, 4).replacements()
    functions["create_group"]("data", [2, 0])
    assert functions["get_process_group_ranks"]("data") == [0, 2]
    assert (functions["get_rank"]("data"), functions["get_group_size"]("data")) == (1, 2)
    assert functions["get_world_rank_from_group_rank"]("data", 0) == 0
    assert functions["get_group_rank_from_world_rank"](2, "data") == 1
    for world in (None, "hccl_world_group", "mccl_world_group"):
        assert (functions["get_rank"](world), functions["get_group_size"](world)) == (2, 4)
    functions["destroy_group"]("data")
    with pytest.raises(RuntimeError, match="group 'data' was not created on rank 2"):
        functions["get_rank"]("data")


@pytest.mark.parametrize("ranks", [[0, 1], [2, 2], [2, 4]])
def test_a_group_that_cannot_be_is_refused(ranks: list[int]) -> None:
    with pytest.raises(RuntimeError, match=r"rank 2 cannot create group 'data'"):
        Groups(2, 4).create("data", ranks)


def test_a_name_means_the_same_ranks_for_ever() -> None:
    groups = Groups(2, 4)
    groups.create("data", [0, 2])
    groups.create("data", [2, 0])
    with pytest.raises(RuntimeError, match="a group 'data' already"):
        groups.create("data", [2, 3])
