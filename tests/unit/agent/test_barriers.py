"""A rank is held at an armed point once, until the harness answers or is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from chaos.agent.barriers import PHASES, Barriers
from chaos.agent.channel import Channel
from chaos.agent.record import Record
from chaos.run.launch.channel import AtBarrier, Hello
from chaos.run.launch.channel import Channel as HarnessChannel
from chaos.scenario.models.terms import Phase
from tests.unit.agent.conftest import Events

ARMED = [{"fault": "kill", "step": 5, "phase": "step.end"}]
SECONDS = 60.0


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[HarnessChannel]:
    channel = HarnessChannel(tmp_path / "agents", run="run-1", secret="s3cret")
    yield channel
    channel.close()


@pytest.fixture
def connect(tmp_path: Path, harness: HarnessChannel) -> Callable[[], Channel]:
    """Connects the agent and lets the harness welcome it with ARMED."""

    def connect() -> Channel:
        channel = Channel(str(tmp_path / "agents"), "s3cret")
        armed: list[object] = []
        waiting = threading.Thread(
            target=lambda: armed.extend(channel.hello(run="run-1", attempt="train", rank=3, pid=1) or [])
        )
        waiting.start()
        hello = harness.messages.get(timeout=SECONDS)
        assert isinstance(hello, Hello)
        hello.connection.answer({"message": "welcome", "armed": ARMED})
        waiting.join(SECONDS)
        assert armed == ARMED
        return channel

    return connect


def in_thread(barriers: Barriers, phase: str) -> threading.Thread:
    thread = threading.Thread(target=barriers.reach, args=(phase,), daemon=True)
    thread.start()
    return thread


def test_the_phases_are_those_of_the_scenario_language() -> None:
    assert get_args(Phase) == PHASES


def test_a_rank_is_held_until_the_harness_answers(
    harness: HarnessChannel, connect: Callable[[], Channel], record: Record, events: Events
) -> None:
    barriers = Barriers(record, connect(), ARMED)
    barriers.step = 5
    rank = in_thread(barriers, "step.end")
    held = harness.messages.get(timeout=SECONDS)
    assert isinstance(held, AtBarrier)
    assert (held.rank, held.fault, held.step, held.phase) == (3, "kill", 5, "step.end")
    assert rank.is_alive()
    assert [event.event for event in events()][1:] == ["barrier.reached"]
    held.connection.answer({"message": "go"})
    rank.join(SECONDS)
    assert not rank.is_alive()
    reached, released = events()[1:]
    assert (reached.data, released.event, released.data) == (
        {"fault": "kill", "step": 5, "phase": "step.end"},
        "barrier.released",
        {"fault": "kill"},
    )


@pytest.mark.parametrize(("action", "recorded"), [("link.down", ["fault.device"]), ("unheard of", [])])
def test_the_device_does_what_the_harness_asks_and_only_that_is_recorded(
    harness: HarnessChannel,
    connect: Callable[[], Channel],
    record: Record,
    events: Events,
    action: str,
    recorded: list[str],
) -> None:
    done: list[str] = []
    barriers = Barriers(record, connect(), ARMED)
    barriers.actions["link.down"] = lambda: done.append("link.down")
    barriers.step = 5
    rank = in_thread(barriers, "step.end")
    held = harness.messages.get(timeout=SECONDS)
    assert isinstance(held, AtBarrier)
    held.connection.answer({"message": "device", "action": action})
    rank.join(SECONDS)
    assert [event.event for event in events()][1:] == ["barrier.reached", *recorded, "barrier.released"]
    assert done == [action] * len(recorded)


def test_other_points_are_passed_and_an_armed_one_only_holds_once(record: Record, events: Events) -> None:
    barriers = Barriers(record, None, [*ARMED, {"fault": "stop", "step": 5, "phase": "step.end"}])
    assert barriers.armed_phases() == {"step.end"}
    # The last three replay steps 4 and 5 after a rollback.
    for step, phase in [(4, "step.end"), (5, "step.begin"), (5, "step.end"), (6, "step.end"), (4, "step.end")]:
        barriers.step = step
        barriers.reach(phase)
    barriers.step = 5
    barriers.reach("step.end")
    assert [event.data["fault"] for event in events("barrier.reached")] == ["kill", "stop"]


def test_a_point_that_is_not_meant_yet_is_armed_again(
    harness: HarnessChannel, connect: Callable[[], Channel], record: Record, events: Events
) -> None:
    barriers = Barriers(record, connect(), [{"fault": "kill", "step": None, "phase": "handler.repair"}])
    for answer in ("later", "later", "go"):
        rank = threading.Thread(target=barriers.enter, args=("repair",), daemon=True)
        rank.start()
        held = harness.messages.get(timeout=SECONDS)
        assert isinstance(held, AtBarrier)
        held.connection.answer({"message": answer})
        rank.join(SECONDS)
    barriers.enter("repair")  # popped by now, or it would wait for an answer
    assert len(events("barrier.reached")) == len(events("barrier.released")) == 3


def test_a_rank_is_let_go_when_the_harness_ends(
    harness: HarnessChannel, connect: Callable[[], Channel], record: Record
) -> None:
    barriers = Barriers(record, connect(), ARMED)
    barriers.step = 5
    rank = in_thread(barriers, "step.end")
    assert isinstance(harness.messages.get(timeout=SECONDS), AtBarrier)
    harness.close()
    rank.join(SECONDS)
    assert not rank.is_alive()


def test_a_rank_that_reaches_its_point_after_the_harness_ended_is_not_held(
    harness: HarnessChannel, connect: Callable[[], Channel], record: Record, events: Events
) -> None:
    barriers = Barriers(record, connect(), ARMED)
    harness.close()
    barriers.step = 5
    barriers.reach("step.end")
    assert len(events("barrier.released")) == 1


@pytest.mark.parametrize(("secret", "run"), [("wrong", "run-1"), ("s3cret", "run-2"), ("", ""), ("é", "run-1")])
def test_who_does_not_know_the_secret_or_the_run_gets_no_arms(
    tmp_path: Path, harness: HarnessChannel, secret: str, run: str
) -> None:
    channel = Channel(str(tmp_path / "agents"), secret)
    assert channel.hello(run=run, attempt="train", rank=3, pid=1) is None
