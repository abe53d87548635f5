"""The pause in the stand-in: all ranks stop after the same step, however fast they are, and all go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.pause import FAILED, PAUSED, Pause, PausePoint, Pausing
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.timings import PROFILES

pytestmark = pytest.mark.processes

SECONDS = 60.0


class Rank:
    """A rank under training: one thread that goes from step to step, each after ``permit`` is released for it."""

    def __init__(self, number: int, step: int = 0) -> None:
        self.point = PausePoint(number, TtpLog(None))
        self.steps: list[int] = []
        self.member: Member | None = None
        self.roster: Roster | None = None
        self.asked: list[int] = []
        self.arrived = step
        self.before_pause: Callable[[int], None] = lambda step: None
        self._permit = threading.Semaphore(0)
        self._first = self._next = step + 1
        self._ended = False
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()

    def train(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._permit.release()

    def _train(self) -> None:
        while self._permit.acquire() and not self._ended:
            self.arrived = self._next
            self.point.reach(self._next)
            self.steps.append(self._next)
            self._next += 1

    def end(self) -> None:
        """Train no more, whatever it waits for."""
        self._ended = True
        self.point.release()
        self._permit.release()
        ended(self._thread)

    def send(self, message: dict[str, Any]) -> bool:
        """As a link to this rank: it answers in a thread, as a processor does."""
        threading.Thread(target=self._answer, args=(message,), daemon=True).start()
        return True

    def _answer(self, message: dict[str, Any]) -> None:
        reply = {"message": "reply", "to": message["message"]}
        if message["message"] == "collect" and message["hold"]:
            reply["step"] = max(self.point.hold(SECONDS), self._first - 1)
        elif message["message"] == "pause":
            self.asked.append(message["step"])
            self.before_pause(message["step"])
            reply["result"] = self.point.ask(message["step"], SECONDS)
        elif message["message"] == "continue":
            self.point.release()
        assert self.roster is not None and self.member is not None
        self.roster.hear(self.member, reply)


class Job:
    """Ranks and the controller's side of their pause; ``abnormal`` is what the controller sees."""

    def __init__(self, ranks: list[Rank]) -> None:
        self.ranks = ranks
        self.roster = Roster(PROFILES["fast"])
        self.states: list[str] = []
        self.abnormal = threading.Event()
        self.closing = threading.Event()
        for number, rank in enumerate(self.ranks):
            rank.roster = self.roster
            rank.member = self.roster.add(number, rank)  # type: ignore[arg-type]
            rank.member.step = rank.arrived
        self.pausing = Pausing(
            self.roster,
            PROFILES["fast"],
            TtpLog(None),
            enter=self.states.append,
            abnormal=self.abnormal.is_set,
            closing=self.closing,
            paused=lambda code, text: self.told.append(("paused", code)),
            ended=lambda code, text: self.told.append(("ended", code)),
        )
        self.ended: list[Pause] = []
        self.told: list[tuple[str, int]] = []

    def pause(self, seconds: float = SECONDS) -> threading.Thread:
        self.pausing.request(seconds)
        assert self.pausing.requested
        thread = threading.Thread(target=lambda: self.ended.append(self.pausing.run()), daemon=True)
        thread.start()
        return thread


NewRank = Callable[..., Rank]
NewJob = Callable[..., Job]


@pytest.fixture
def new_rank() -> Iterator[NewRank]:
    """Make a rank: ``new_rank(number, step)``. Its thread is ended after the test."""
    made: list[Rank] = []

    def new_rank(number: int, step: int = 0) -> Rank:
        made.append(Rank(number, step))
        return made[-1]

    yield new_rank
    for rank in made:
        rank.end()


@pytest.fixture
def new_job(new_rank: NewRank) -> NewJob:
    """Make a job of ranks that have done so many steps: ``new_job(4, 5)``."""
    return lambda *done: Job([new_rank(number, step) for number, step in enumerate(done)])


def ordered(*ranks: Rank) -> None:
    """Wait until these ranks have heard that they should stop."""
    wait_for("order", lambda: all(rank.point._step is not None for rank in ranks), seconds=SECONDS)


def ended(thread: threading.Thread) -> None:
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_all_ranks_stop_one_step_after_the_furthest_and_go_on_when_told(new_job: NewJob) -> None:
    job = new_job(4, 5, 5)
    thread = job.pause()
    ordered(*job.ranks)
    for rank in job.ranks:
        rank.train(8)
    wait_for("pause", lambda: [rank.steps for rank in job.ranks] == [[5], [], []], seconds=SECONDS)
    assert {step for rank in job.ranks for step in rank.asked} == {6}
    job.pausing.go_on()
    ended(thread)
    assert job.ended == [Pause.CONTINUED]
    assert job.states == ["STATE_OP_PAUSE"]
    assert job.told == [("paused", 0), ("ended", 0)]
    wait_for("end", lambda: all(rank.steps[-1:] and rank.steps[-1] >= 12 for rank in job.ranks), seconds=SECONDS)
    assert [rank.steps for rank in job.ranks] == [list(range(5, 13)), list(range(6, 14)), list(range(6, 14))]


def test_a_rank_that_is_faster_than_the_controller_passes_no_step_that_is_to_be_agreed_on(new_job: NewJob) -> None:
    job = new_job(5, 5)
    fast, slow = job.ranks

    def run_ahead(step: int) -> None:
        fast.train(5)  # it has said that it is at step 5, and would go on to 10 before it hears that 6 is the step
        wait_for("arrival", lambda: fast.arrived == 6, seconds=SECONDS)

    fast.before_pause = run_ahead
    thread = job.pause()
    ordered(fast, slow)
    slow.train(5)
    wait_for("pause", lambda: (fast.point._blocked, slow.point._blocked) == (6, 6), seconds=SECONDS)
    assert (fast.steps, fast.asked, slow.asked) == ([], [6], [6])
    job.pausing.go_on()
    ended(thread)
    assert job.ended == [Pause.CONTINUED]


def test_a_heartbeat_after_the_reply_changes_nothing_about_the_step(new_job: NewJob) -> None:
    job = new_job(5, 5)
    first = job.ranks[0]
    assert first.member is not None
    hear = job.roster.hear

    def beaten(member: Member, message: dict[str, Any]) -> None:
        hear(member, message)
        if message.get("to") == "collect":  # who pauses only, with no replica, counts no steps in a heartbeat
            hear(member, {"message": "heartbeat", "step": 0})

    job.roster.hear = beaten  # type: ignore[method-assign]
    thread = job.pause()
    ordered(*job.ranks)
    assert [rank.asked for rank in job.ranks] == [[6], [6]]
    for rank in job.ranks:
        rank.train(1)
    job.pausing.go_on()
    ended(thread)
    assert job.ended == [Pause.CONTINUED]


def test_a_rank_that_is_held_and_never_told_the_step_goes_on(new_rank: NewRank) -> None:
    rank = new_rank(0)
    rank.point.hold(0.05)
    rank.train(2)
    wait_for("steps", lambda: rank.steps == [1, 2], seconds=SECONDS)


def test_a_held_rank_notices_a_stop(new_rank: NewRank) -> None:
    rank = new_rank(0)
    rank.point.hold(60.0)
    rank.train(2)
    rank.point.release()
    wait_for("steps", lambda: rank.steps == [1, 2], seconds=SECONDS)


def test_a_rank_that_becomes_abnormal_ends_the_wait_and_nobody_goes_on(new_job: NewJob) -> None:
    job = new_job(1, 1)
    thread = job.pause()
    ordered(*job.ranks)
    for rank in job.ranks:
        rank.train(3)
    job.abnormal.set()
    ended(thread)
    assert job.ended == [Pause.ABNORMAL]
    assert job.told[-1] == ("ended", 406)
    assert [rank.steps for rank in job.ranks] == [[], []]


def test_a_pause_that_nobody_ends_expires(new_job: NewJob) -> None:
    job = new_job(1, 1)
    thread = job.pause(seconds=0.05)
    ordered(*job.ranks)
    for rank in job.ranks:
        rank.train(3)
    ended(thread)
    assert job.ended == [Pause.EXPIRED]


def test_a_pause_that_was_taken_back_before_it_began_stops_nobody(new_job: NewJob) -> None:
    job = new_job(1, 1)
    job.pausing.request(SECONDS)
    job.pausing.go_on()
    assert job.pausing.run() is Pause.CONTINUED
    assert job.states == []
    assert [rank.asked for rank in job.ranks] == [[], []]


def test_ranks_that_cannot_be_paused_go_on(new_job: NewJob) -> None:
    job = new_job(1, 1)
    job.ranks[1].point.ask = lambda step, seconds: FAILED  # type: ignore[method-assign]
    thread = job.pause()
    ordered(job.ranks[0])
    job.ranks[0].train(3)
    ended(thread)
    assert job.ended == [Pause.CONTINUED]
    wait_for("end", lambda: job.ranks[0].steps == [2, 3, 4], seconds=SECONDS)


@pytest.mark.parametrize("step", [2, 3, 4])
def test_a_rank_that_has_passed_the_step_or_does_not_get_there_says_so(new_rank: NewRank, step: int) -> None:
    rank = new_rank(0)
    rank.train(3)
    wait_for("steps", lambda: rank.steps == [1, 2, 3], seconds=SECONDS)
    assert rank.point.ask(step, 0.05) == FAILED


def test_a_paused_rank_says_so(new_rank: NewRank) -> None:
    rank = new_rank(0)
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(rank.point.ask(2, SECONDS)), daemon=True)
    thread.start()
    ordered(rank)
    rank.train(5)
    ended(thread)
    assert answers == [PAUSED]
    assert rank.steps == [1]
