"""What is kept of a history is enough for the latest recovery, and no more for a long run than for a short one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.history.event import Event
from chaos.live.kept import Kept
from chaos.live.recovery import Recoveries
from chaos.plan.parts.response import Recovery
from tests.kit.plans import plan_with


class Told:
    """Events of a run of two ranks, in order of time."""

    def __init__(self, **recoveries: int) -> None:
        self.kept = Kept(recoveries)
        self._mono = 0

    def take(self, _event: str, rank: int | None = 0, pid: int = 100, **data: Any) -> None:
        self._mono += 1
        self.kept.take(
            Event(_event, self._mono, self._mono, "agent", 0, attempt="train", rank=rank, pid=pid, data=data)
        )

    def train(self, first: int, last: int, save_every: int = 0, pid: int = 100) -> None:
        for step in range(first, last + 1):
            for rank in range(2):
                self.take("step.begin", rank, pid + rank, step=step)
                self.take("step.end", rank, pid + rank, step=step)
                self.take("digest", rank, pid + rank, step=step)
                if save_every and step % save_every == 0:
                    self.take("checkpoint.begin", rank, pid + rank, kind="periodic", step=step)
                    self.take("checkpoint.end", rank, pid + rank, kind="periodic", step=step)

    def fault(self, name: str, rank: int = 0) -> None:
        self.take("fault.injecting", rank, fault=name)

    def steps(self, event: str = "step.end", rank: int = 0) -> list[int]:
        return [kept.data["step"] for kept in self.kept.history().select(event, rank=rank)]


def test_a_second_fault_of_a_recovery_drops_no_step_since_the_first() -> None:
    run = Told(first=1, second=1)
    run.train(1, 5)
    run.fault("first")
    run.train(6, 9)
    run.fault("second", rank=1)
    run.train(10, 11)
    assert run.steps() == [5, 6, 7, 8, 9, 10, 11]


def test_the_act_of_a_fault_on_its_next_rank_drops_no_step() -> None:
    run = Told(kill=1)
    run.train(1, 5)
    run.fault("kill", rank=0)
    run.train(6, 7)
    run.fault("kill", rank=1)
    assert run.steps() == [5, 6, 7]


def test_the_next_recovery_begins_anew_and_a_fault_without_one_does_not() -> None:
    run = Told(first=1, second=2)
    run.fault("first")
    run.train(1, 5)
    run.fault("harmless")
    run.train(6, 7)
    assert run.steps() == [1, 2, 3, 4, 5, 6, 7]
    run.fault("second")
    run.train(8, 9)
    assert run.steps() == [7, 8, 9]
    run.fault("first", rank=1)
    assert run.steps() == [7, 8, 9], "an earlier recovery that is called for again is not the latest"


def test_a_fault_belongs_to_the_last_recovery_that_is_planned_for_it() -> None:
    tried = Recovery("TTP", ("a", "b"), 5, succeeds=False)
    plan = plan_with(
        mechanism="ARF",
        recoveries=(tried, Recovery("ARF", ("a", "b"), 5), Recovery("TTP", ("c",), 9)),
    )
    assert Recoveries(plan, Path("nowhere")).by_fault == {"a": 1, "b": 1, "c": 2}


@pytest.mark.parametrize("save_every", [1, 7])
def test_a_long_run_takes_no_more_room_than_a_short_one(save_every: int) -> None:
    def kept(last: int) -> int:
        run = Told(kill=1)
        run.train(1, last, save_every)
        run.fault("kill")
        run.train(last + 1, last + 300, save_every, pid=200)
        return len(run.kept.history().events)

    assert kept(2_000) == kept(300)


def test_saves_before_and_after_a_fault_are_there_each_of_its_kind() -> None:
    run = Told(kill=1)
    run.train(1, 200, save_every=1)
    run.fault("kill")
    run.take("checkpoint.end", kind="end-of-life", step=200)
    run.train(201, 400, save_every=1)
    saves = run.kept.history().select("checkpoint.end", rank=0, kind="periodic")
    steps = [event.data["step"] for event in saves]
    assert {1, 200, 201, 400} <= {*steps} and len(steps) < 100
    assert run.kept.history().first("checkpoint.end", kind="end-of-life") is not None


def test_no_end_of_a_process_is_lost() -> None:
    run = Told(a=1, b=2)
    for number in range(100):
        run.take("rank.exit", 0, 100 + number, signal=9, code=None)
    run.fault("a")
    run.fault("b")
    assert len(run.kept.history().select("rank.exit")) == 100
    assert [event.data["fault"] for event in run.kept.history().select("fault.injecting")] == ["a", "b"]
