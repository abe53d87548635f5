"""Leaving a communicator and joining the next one: who waits for whom, and what ends the waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from chaos.rehearsal.device.communication_errors import CommunicationAborted
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.device.generations import Generations
from chaos.rehearsal.device.membership import Membership

SECONDS = 60.0


class Ranks:
    """Two ranks, each with a membership of its own, in threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.joined: list[int] = []
        self.made = Event()
        self.while_made: Callable[[], None] = lambda: None
        self.all = [self.new(rank) for rank in (0, 1)]

    def new(self, rank: int) -> Membership:
        """The membership of a new process of a rank."""

        def make(place: str) -> Communicator:
            self.made.set()
            self.while_made()
            return Communicator(rank, range(2), place, b"secret", limit_seconds=SECONDS, on_refused=print)

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
    for membership in ranks.all:
        membership.stop()
    for membership in ranks.all:
        membership.resume()
    assert ranks.reduce() == [3.0, 3.0]
    assert sorted(ranks.joined) == [0, 0, 1, 1]


def test_resuming_does_not_wait_for_a_rank_that_never_comes_and_a_stop_ends_the_wait(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    for membership in ranks.all:
        membership.stop()
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
    for membership in ranks.all:
        membership.stop()
    for membership in ranks.all:
        membership.resume()
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
        ranks.made.clear()
        waiting = pool.submit(ranks.all[0].rebuild)
        assert ranks.made.wait(SECONDS)
        ranks.all[0].stop()
    with pytest.raises(CommunicationAborted):
        waiting.result()


def test_a_stop_ends_the_wait_for_a_rank_that_does_not_resume(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    for membership in ranks.all:
        membership.stop()
    ranks.all[0].resume()
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(ranks.all[0].join)
        assert not wait([training], timeout=0.1).done  # rank 1 has not resumed
        ranks.all[0].stop()
    with pytest.raises(CommunicationAborted):
        training.result()


def test_whoever_waited_when_a_stop_came_does_not_take_part_in_what_comes_after_it(ranks: Ranks) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    for membership in ranks.all:
        membership.stop()
    ranks.all[0].resume()
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(ranks.all[0].join)
        assert not wait([training], timeout=0.1).done
        ranks.all[0].stop()
        ranks.all[0].resume()  # before the thread that waited has run again, perhaps
        with pytest.raises(CommunicationAborted):
            training.result(SECONDS)
        ranks.all[0].leave()


def test_a_stop_before_a_rank_has_joined_is_remembered(ranks: Ranks) -> None:
    ranks.all[0].stop()
    with pytest.raises(CommunicationAborted):
        ranks.all[0].join()
    with ThreadPoolExecutor(1) as pool:
        rebuilt = pool.submit(ranks.all[0].rebuild)  # which leads on
        ranks.all[1].join()
        rebuilt.result(SECONDS)
    assert ranks.reduce() == [3.0, 3.0]


@pytest.mark.parametrize("way", ["resume", "rebuild"])
def test_a_stop_that_comes_while_a_communicator_is_made_is_not_lost(ranks: Ranks, way: str) -> None:
    assert ranks.reduce() == [3.0, 3.0]
    ranks.all[0].stop()
    stopper = Thread(target=ranks.all[0].stop)

    def stop_meanwhile() -> None:
        stopper.start()
        stopper.join(0.1)  # over by then, or it waits until the communicator is in its place

    ranks.while_made = stop_meanwhile
    with pytest.raises(CommunicationAborted):
        getattr(ranks.all[0], way)()
        ranks.all[0].join()
    stopper.join()
    ranks.all[0].leave()
