"""Controller and processor obey only who proves to be of the same run, and nothing that was overheard proves it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from chaos.rehearsal.ttp.trust import Trust, UnprovenCaller
from chaos.rehearsal.ttp.wire import Link, Message

SECONDS = 60.0
OURS = Trust("run-1", b"secret")


@pytest.fixture
def ends() -> Iterator[tuple[Link, Link]]:
    one, other = socket.socketpair()
    for end in (one, other):
        end.settimeout(SECONDS)
    yield Link(one), Link(other)
    one.close()
    other.close()


def controller(link: Link, trust: Trust = OURS) -> tuple[threading.Thread, list[Any]]:
    """A controller's side in a thread: the rank that it trusts, or why it trusts nobody."""
    outcome: list[Any] = []

    def challenge() -> None:
        try:
            outcome.append(trust.challenge(link))
            link.send({"message": "registered", "reboot": False})
        except UnprovenCaller as unproven:
            outcome.append(str(unproven))
            link.close()

    thread = threading.Thread(target=challenge)
    thread.start()
    return thread, outcome


def test_two_of_one_run_trust_each_other(ends: tuple[Link, Link]) -> None:
    thread, outcome = controller(ends[0])
    assert OURS.register(ends[1], 2) == {"message": "registered", "reboot": False}
    thread.join(SECONDS)
    assert outcome == [2]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Trust("run-1", b"another"), "it sent nothing readable"),
        (Trust("run-2", b"secret"), "it is of another run"),
    ],
)
def test_a_rank_obeys_no_controller_of_another_run(ends: tuple[Link, Link], other: Trust, why: str) -> None:
    thread, outcome = controller(ends[0], other)
    if other.run == OURS.run:
        with pytest.raises(UnprovenCaller, match="did not prove that it knows this run's secret"):
            OURS.register(ends[1], 2)
        ends[1].close()
        thread.join(SECONDS)
        assert outcome == ["it did not prove that it knows this run's secret"]
    else:
        assert OURS.register(ends[1], 2) is None
        thread.join(SECONDS)
        assert outcome == [why]


def test_who_answers_registered_at_once_is_not_obeyed(ends: tuple[Link, Link]) -> None:
    ends[0].send({"message": "registered", "reboot": False})
    with pytest.raises(UnprovenCaller):
        OURS.register(ends[1], 2)


def overheard(ends: tuple[Link, Link]) -> list[Message]:
    """What a rank of the run said in an earlier, honest registration."""
    said: list[Message] = []

    class Heard(Link):
        def send(self, message: Message) -> bool:
            said.append(message)
            return super().send(message)

    end, other = socket.socketpair()
    thread, outcome = controller(Link(end))
    OURS.register(Heard(other), 2)
    thread.join(SECONDS)
    assert outcome == [2]
    end.close()
    other.close()
    return said


def test_a_registration_that_is_said_again_proves_nothing(ends: tuple[Link, Link]) -> None:
    said = overheard(ends)
    thread, outcome = controller(ends[0])
    for message in said:
        ends[1].send(message)
    thread.join(SECONDS)
    assert outcome == ["it did not prove that it knows this run's secret"]


def test_a_controllers_own_proof_is_none_of_a_rank(ends: tuple[Link, Link]) -> None:
    """Who knows nothing may send back what it was sent."""
    thread, outcome = controller(ends[0])
    ends[1].send({"message": "register", "run": "run-1", "rank": 2, "nonce": "n"})
    challenge = ends[1].receive()
    assert challenge is not None
    ends[1].send({"message": "proof", "proof": challenge["proof"]})
    thread.join(SECONDS)
    assert outcome == ["it did not prove that it knows this run's secret"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"message": "heartbeat"}, "it did not introduce itself as a rank does"),
        ({"message": "register", "rank": "2", "nonce": "n", "run": "run-1"}, "it did not introduce itself as a rank"),
        ({"message": "register", "rank": True, "nonce": "n", "run": "run-1"}, "it did not introduce itself as a rank"),
        ({"message": "register", "rank": 2, "nonce": None, "run": "run-1"}, "it did not introduce itself as a rank"),
        ({"message": "register", "rank": 2, "nonce": "n"}, "it is of another run"),
        ({"message": "register", "rank": 2, "nonce": "n" * 2000, "run": "run-1"}, "it sent nothing readable"),
    ],
)
def test_why_nobody_is_trusted_is_told_without_the_callers_words(
    ends: tuple[Link, Link], said: Message, why: str
) -> None:
    thread, outcome = controller(ends[0])
    ends[1].send(said)
    thread.join(SECONDS)
    assert len(outcome) == 1
    assert outcome[0].startswith(why)


def test_the_secret_is_in_no_text_of_what_knows_it() -> None:
    assert "secret'" not in repr(OURS) and str(OURS.secret) not in repr(OURS)
