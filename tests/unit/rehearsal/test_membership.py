"""Leaving a communicator and joining the next one: who waits for whom, and what ends the waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

from chaos.rehearsal.communicator import CommunicationAborted, Communicator
from chaos.rehearsal.generations import Generations
from chaos.rehearsal.membership import Membership

SECONDS = 20.0


class Ranks:
    """Two ranks, each with a membership of its own, in threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.joined: list[int] = []
        self.all = [self.new(rank) for rank in (0, 1)]

    def new(self, rank: int) -> Membership:
        """The membership of a new process of a rank."""

        def make(place: str) -> Communicator:
            return Communicator(rank, range(2), place, b"secret", limit_seconds=SECONDS, on_stranger=print)

        generations = Generations(str(self._directory), "train")
        return Membership(generations, make, lambda communicator: self.joined.append(communicator.rank))

    def reduce(self) -> list[float]:
        """What each rank gets when both give their number and one."""

        def own(rank: int) -> float:
            return float(self.all[rank].join().all_reduce(np.array([rank + 1.0]))[0])

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(own, (0, 1)))


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    return Ranks(tmp_path)


def test_ranks_that_were_stopped_meet_again(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    for one in ranks.all:
        one.stop()
    for one in ranks.all:
        one.resume()
    assert ranks.reduce() == [3.0, 3.0]
    assert sorted(ranks.joined) == [0, 0, 1, 1]


def test_resuming_does_not_wait_for_a_rank_that_never_comes_and_a_stop_ends_the_wait(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    for one in ranks.all:
        one.stop()
    ranks.all[0].resume()  # returns, although rank 1 does not resume
    ranks.all[0].stop()
    ranks.all[0].leave()
    ranks.all[1] = ranks.new(1)  # its new process, which joins the newest generation
    with ThreadPoolExecutor(2) as pool:
        survivor, new = pool.submit(ranks.all[0].rebuild), pool.submit(ranks.all[1].join)
        survivor.result(SECONDS)
        new.result(SECONDS)
    assert ranks.reduce() == [3.0, 3.0]


def test_a_new_process_that_comes_first_meets_the_survivor_of_a_failed_repair(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    for one in ranks.all:
        one.stop()
    for one in ranks.all:
        one.resume()
    assert ranks.reduce() == [3.0, 3.0]  # in the generation of the repair both have met
    ranks.all[0].leave()
    with ThreadPoolExecutor(2) as pool:
        ranks.all[1] = ranks.new(1)
        new = pool.submit(ranks.all[1].join)
        assert not wait([new], timeout=0.2).done  # the survivor has not gone on yet
        survivor = pool.submit(ranks.all[0].rebuild)
        survivor.result(SECONDS)
        new.result(SECONDS)
    assert ranks.reduce() == [3.0, 3.0]


def test_a_stop_ends_the_wait_for_new_processes(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    ranks.all[0].stop()
    ranks.all[0].leave()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ranks.all[0].rebuild)
        while not wait([waiting], 0.01).done:
            ranks.all[0].stop()
    with pytest.raises(CommunicationAborted):
        waiting.result()
