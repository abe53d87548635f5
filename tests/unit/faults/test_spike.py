"""A spike is made by the rank itself; its own record is the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.record import Record
from chaos.base.registry import registry
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.values.spike import KIND
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.protocol import LaunchSpec


@pytest.fixture
def job(token: str, tmp_path: Path) -> Iterator[LocalJob]:
    spec = LaunchSpec(token, "train", ("sleep", "1000"), {"PATH": "/usr/bin:/bin"}, tmp_path, tmp_path / "log")
    job = LocalPlatform().start(spec)
    yield job
    job.stop(0)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(str(tmp_path), run="run", attempt="train", rank=1)


@pytest.fixture
def victim(job: LocalJob, record: Record, tmp_path: Path) -> Victim:
    return Victim(1, job.launcher, next(tmp_path.glob("train-rank_1-*.jsonl")), fault="spike", parameters={"norm": 7.5})


def test_it_is_registered() -> None:
    assert registry("faults").load("spike") is KIND
    assert KIND.undo_steps("spike", []) == []


def test_the_rank_is_told_what_the_scenario_says(job: LocalJob, victim: Victim) -> None:
    fields: list[dict[str, Any]] = []
    KIND.inject(job, replace(victim, answer=fields.append))
    assert fields == [{"message": "alter", "repeat": 0, "norm": 7.5}]


def test_a_rank_that_is_not_held_cannot_be_told(job: LocalJob, victim: Victim) -> None:
    with pytest.raises(FaultMissed, match="rank 1 is not held at a barrier"):
        KIND.inject(job, victim)


def test_the_evidence_is_the_ranks_own_record_of_this_very_fault(job: LocalJob, victim: Victim, record: Record) -> None:
    assert KIND.evidence(job, victim) is None
    record.write("fault.scaled", fault="another", step=3, factor=2.0, norm=None)
    assert KIND.evidence(job, victim) is None
    record.write("fault.scaled", fault="spike", step=5, factor=9.5, norm=7.5)
    assert KIND.evidence(job, victim) == {"signal": None, "factor": 9.5, "norm": 7.5}


def test_a_rank_that_ended_without_a_record_was_not_hit(job: LocalJob, victim: Victim) -> None:
    job.stop(0)
    with pytest.raises(FaultMissed, match="rank 1 has ended and has not recorded"):
        KIND.evidence(job, victim)
