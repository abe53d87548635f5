"""The online repair of the stand-in: who stops, who sends, who goes on, and when it must give up."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.retry import Retry, RetryFailed
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.status import HCCL, RETRY, UCE
from chaos.rehearsal.ttp.timings import PROFILES

pytestmark = pytest.mark.processes

LIMIT = 600.0
TIMINGS = replace(PROFILES["fast"], action=LIMIT, lost_after=LIMIT)
"""Limits that nothing here meets, however busy the machine is."""


class Rank:
    """A rank's link: it replies to everything at once, with the result that a test sets for a message."""

    def __init__(self, roster: Roster, results: dict[str, int]) -> None:
        self.member: Member | None = None
        self.told: list[dict[str, Any]] = []
        self._roster = roster
        self._results = results

    def send(self, message: dict[str, Any]) -> bool:
        self.told.append(message)
        reply = {"message": "reply", "to": message["message"], "result": self._results.get(message["message"], 0)}
        assert self.member is not None
        threading.Thread(target=self._roster.hear, args=(self.member, reply)).start()
        return True


class Job:
    """Four ranks, by default in the replica groups [0, 2] and [1, 3]."""

    def __init__(
        self,
        status: dict[int, int],
        results: dict[int, dict[str, int]] | None = None,
        groups: tuple[list[int], ...] = ([0, 2], [1, 3]),
    ) -> None:
        self.states: list[str] = []
        roster, replicas = Roster(TIMINGS), Replicas(4)
        self.ranks: list[Rank] = []
        for number in range(4):
            rank = Rank(roster, (results or {}).get(number, {}))
            rank.member = roster.add(number, rank)  # type: ignore[arg-type]
            rank.member.status = status.get(number, 0)
            replicas.report(number, next(group for group in groups if number in group))
            self.ranks.append(rank)
        self._retry = Retry(roster, replicas, TIMINGS, TtpLog(None), self.states.append)
        self._members = roster.members()

    def repair(self) -> None:
        self._retry.run(self._members, 9)

    def told(self, rank: int) -> list[str]:
        return [message["message"] for message in self.ranks[rank].told]


def test_a_memory_error_is_repaired_from_the_replica_and_all_go_on_at_the_same_step() -> None:
    job = Job({1: UCE})
    job.repair()
    assert job.states == ["STATE_OP_ENV_CLEAR", "STATE_OP_REPAIR"]
    assert job.told(0) == job.told(2) == ["stop", "clean", "rollback", "go on"]
    assert job.told(1) == job.told(3) == ["stop", "clean", "repair", "rollback", "go on"]
    actions = job.ranks[1].told[2]["actions"]
    assert actions["3"] == {"repair_type": 0, "src": [3], "dst": [1], "rank_list": [1, 3]}
    assert actions["1"] == {"repair_type": 1, "src": [3], "dst": [1], "rank_list": [1, 3]}
    assert {rank.told[-1]["step"] for rank in job.ranks} == {9}


def test_every_rank_that_takes_part_is_named_to_each_of_them_whatever_its_group() -> None:
    """Recorded of the vendor's SDK: errors of ranks 1 and 2, groups [0, 2] and [1, 3]."""
    job = Job({1: UCE, 2: UCE})
    job.repair()
    actions = job.ranks[1].told[2]["actions"]
    everyone = [0, 1, 2, 3]
    assert actions == {
        "0": {"repair_type": 0, "src": [0], "dst": [2], "rank_list": everyone},
        "1": {"repair_type": 1, "src": [3], "dst": [1], "rank_list": everyone},
        "2": {"repair_type": 1, "src": [0], "dst": [2], "rank_list": everyone},
        "3": {"repair_type": 0, "src": [3], "dst": [1], "rank_list": everyone},
    }


def test_nothing_is_copied_after_a_low_level_clean_or_a_communication_error() -> None:
    low = Job({1: UCE}, {1: {"clean": 2}})
    low.repair()
    assert all(low.told(rank) == ["stop", "clean", "rollback", "go on"] for rank in range(4))
    all_ranks = Job(dict.fromkeys(range(4), HCCL))
    all_ranks.repair()
    assert all(all_ranks.told(rank) == ["stop", "clean", "rollback", "go on"] for rank in range(4))


def test_a_wrong_result_is_repaired_by_a_copy_though_no_memory_was_lost() -> None:
    job = Job({0: RETRY})
    job.repair()
    pair = {"src": [2], "dst": [0], "rank_list": [0, 2]}
    assert job.ranks[0].told[2]["actions"] == {"0": {"repair_type": 3, **pair}, "2": {"repair_type": 0, **pair}}


def test_the_state_comes_from_the_next_good_replica_in_the_groups_circle() -> None:
    job = Job({3: UCE, 0: UCE}, groups=([0, 1, 2, 3],))
    job.repair()
    actions = job.ranks[1].told[2]["actions"]
    assert {rank: info["src"] for rank, info in actions.items()} == {"0": [1], "3": [1], "1": [1, 1]}
    assert actions["1"]["dst"] == [0, 3]


@pytest.mark.parametrize(
    ("status", "results", "reason", "unclean"),
    [
        ({1: UCE, 3: UCE}, {}, r"dp:\[1, 3\] has no complete data", set()),
        ({1: UCE}, {2: {"stop": 1}}, r"stop failed, ranks: \[2\]", set()),
        ({1: UCE}, {2: {"clean": 1}}, r"device clean failed, ranks: \[2\]", {2}),
        ({1: UCE}, {2: {"clean": 4}}, r"device clean failed, ranks: \[2\]", set()),
        ({1: UCE}, {3: {"repair": 1}}, r"repair failed, ranks: \[3\]", set()),
    ],
)
def test_a_repair_that_cannot_be_done_says_so_and_which_ranks_a_new_process_could_replace(
    status: dict[int, int], results: dict[int, dict[str, int]], reason: str, unclean: set[int]
) -> None:
    job = Job(status, results)
    with pytest.raises(RetryFailed, match=reason) as failed:
        job.repair()
    assert failed.value.unclean == unclean
    assert all("go on" not in job.told(rank) for rank in range(4))


def test_who_need_not_wait_for_a_rank_that_has_failed_has_done_its_part_before_the_repair_is_given_up() -> None:
    job = Job({1: UCE}, {1: {"repair": 1}})
    failing, slow = job.ranks[1], job.ranks[3]
    answers, done = slow.send, threading.Event()

    def answer_late(message: dict[str, Any]) -> bool:
        if message["message"] != "repair":
            return answers(message)

        def later() -> None:
            done.set()
            answers(message)

        timer = threading.Timer(0.1, later)  # its thread gets the processor late, when the other has failed
        timer.start()
        return True

    slow.send = answer_late  # type: ignore[method-assign]
    with pytest.raises(RetryFailed, match=r"repair failed, ranks: \[1\]"):
        job.repair()
    assert done.is_set() and failing.told[-1]["message"] == "repair"


def test_a_repair_that_has_failed_does_not_wait_for_the_rank_at_the_other_end() -> None:
    job = Job({1: UCE}, {1: {"repair": 1}})
    sender = job.ranks[3]
    heard = sender.send

    def silent_in_repair(message: dict[str, Any]) -> bool:
        return True if message["message"] == "repair" else heard(message)

    sender.send = silent_in_repair  # type: ignore[method-assign]
    began = time.monotonic()
    with pytest.raises(RetryFailed, match=r"repair failed, ranks: \[1\]"):
        job.repair()
    assert time.monotonic() - began < LIMIT / 2
