"""Replacing lost processes (ARF) in the stand-in: who is told what, and when it must give up."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.recover import OrderedToEnd, Recover, RecoverFailed
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.status import INIT_FINISH, PREREPAIR_FINISH
from chaos.rehearsal.ttp.timings import PROFILES, Timings

pytestmark = pytest.mark.processes

TIMINGS = dataclasses.replace(PROFILES["fast"], action=600.0, lost_after=600.0, replacement=600.0)
"""Limits that nothing here meets, however busy the machine is."""

HASTY = dataclasses.replace(TIMINGS, replacement=0.3)
"""With these a new process is not waited for."""


class Rank:
    """A rank's link: it replies at once, with what a test sets for a message, or dies of it."""

    def __init__(self, job: Job, member_of: int) -> None:
        self.number = member_of
        self.member: Member | None = None
        self.told: list[dict[str, Any]] = []
        self.results: dict[str, int] = {}
        self.dies_of = ""
        self._job = job

    def send(self, message: dict[str, Any]) -> bool:
        self.told.append(message)
        threading.Thread(target=self._answer, args=(message["message"],)).start()
        return True

    def _answer(self, kind: str) -> None:
        assert self.member is not None
        if kind == self.dies_of:
            self._job.roster.lose_link(self.member)
            return
        reply = {"message": "reply", "to": kind, "result": self.results.get(kind, 0)}
        self._job.roster.hear(self.member, reply)
        if kind == "rebuild" and self.member.reboot:
            self._job.roster.hear(self.member, {"message": "heartbeat", "status": PREREPAIR_FINISH})


class Job:
    """Four ranks in the replica groups [0, 2] and [1, 3]."""

    def __init__(self, timings: Timings = TIMINGS) -> None:
        self.states: list[str] = []
        self._timings = timings
        self.roster, self._replicas = Roster(timings), Replicas(4)
        self.ranks = [Rank(self, number) for number in range(4)]
        for number, rank in enumerate(self.ranks):
            rank.member = self.roster.add(number, rank)  # type: ignore[arg-type]
            self._replicas.report(number, [0, 2] if number % 2 == 0 else [1, 3])

    def replace(self, number: int) -> Rank:
        """A new process of a rank registers and waits for its groups."""
        new = Rank(self, number)
        new.member = self.roster.add(number, new, reboot=True)  # type: ignore[arg-type]
        self.roster.hear(new.member, {"message": "heartbeat", "status": INIT_FINISH})
        return new

    def recover(self, *lost: int, ordered: str | None = None) -> None:
        recover = Recover(
            self.roster,
            self._replicas,
            self._timings,
            TtpLog(None),
            enter=self.states.append,
            closing=threading.Event(),
            ordered=lambda: ordered,
        )
        recover.run(lost, 9)

    def told(self, rank: int) -> list[str]:
        return [message["message"] for message in self.ranks[rank].told]


def test_the_lost_rank_gets_the_state_of_its_replica_and_the_others_only_lose_time() -> None:
    job = Job()
    new = job.replace(2)
    job.recover(2)
    assert job.states == ["STATE_OP_ENV_CLEAR", "STATE_OP_REPAIR"]
    assert job.told(1) == job.told(3) == ["stop", "clean", "rebuild", "rollback", "go on"]
    assert job.told(0) == ["stop", "clean", "rebuild", "repair", "rollback", "go on"]
    assert [message["message"] for message in new.told] == ["rebuild", "repair", "rollback", "go on"]
    assert job.told(2) == []  # its first process is gone
    actions = new.told[1]["actions"]
    assert actions["0"] == {"repair_type": 0, "src": [0], "dst": [2], "rank_list": [0, 2]}
    assert actions["2"] == {"repair_type": 3, "src": [0], "dst": [2], "rank_list": [0, 2]}
    assert job.ranks[0].told[0]["strategy"] == "recover"
    assert new.told[0]["lost"] == [2]
    assert {rank.told[-1]["step"] for rank in (job.ranks[0], job.ranks[1], job.ranks[3], new)} == {9}


def test_two_ranks_of_different_groups_are_replaced_together() -> None:
    job = Job()
    job.replace(2)
    job.replace(3)
    job.recover(2, 3)
    actions = job.ranks[0].told[3]["actions"]
    assert {rank: (action["repair_type"], action["src"], action["dst"]) for rank, action in actions.items()} == {
        "0": (0, [0], [2]),
        "1": (0, [1], [3]),
        "2": (3, [0], [2]),
        "3": (3, [1], [3]),
    }


def test_without_a_new_process_in_time_nothing_is_rebuilt() -> None:
    job = Job(HASTY)
    with pytest.raises(RecoverFailed, match=r"ranks \[2\]: no new process within 0.3 s") as caught:
        job.recover(2)
    assert caught.value.lost == {2}
    assert job.told(0) == ["stop", "clean"]


@pytest.mark.parametrize("message", ["stop", "clean", "rebuild", "repair", "rollback"])
def test_a_second_death_ends_it_at_once_and_is_among_the_lost(message: str) -> None:
    job = Job()
    job.replace(2)
    job.ranks[0].dies_of = message
    with pytest.raises(RecoverFailed, match=rf"{message}: ranks \[0\] died") as caught:
        job.recover(2)
    assert caught.value.lost == {0, 2}


def test_a_survivor_that_dies_while_a_process_is_waited_for_ends_it() -> None:
    job = Job()
    job.ranks[1].dies_of = "clean"
    assert job.ranks[1].member is not None
    threading.Timer(0.05, job.roster.lose_link, [job.ranks[1].member]).start()
    job.ranks[1].dies_of = ""
    with pytest.raises(RecoverFailed, match=r"ranks \[1\] died") as caught:
        job.recover(2)
    assert caught.value.lost == {1, 2}


@pytest.mark.parametrize("strategy", ["dump", "exit"])
def test_another_end_may_be_ordered_while_a_process_is_waited_for(strategy: str) -> None:
    job = Job()
    with pytest.raises(OrderedToEnd) as caught:
        job.recover(2, ordered=strategy)
    assert caught.value.strategy == strategy
    assert job.told(0) == ["stop", "clean"]


def test_a_handler_that_fails_ends_it() -> None:
    job = Job()
    job.replace(2)
    job.ranks[3].results["rebuild"] = 1
    with pytest.raises(RecoverFailed, match=r"rebuild failed, ranks: \[3\]") as caught:
        job.recover(2)
    assert caught.value.lost == {2}


def test_a_rank_that_is_lost_again_needs_another_new_process() -> None:
    job = Job()
    job.replace(2)
    job.recover(2)
    job._timings = HASTY
    with pytest.raises(RecoverFailed, match="no new process"):
        job.recover(2)
