"""Between the first fault and the end of a launch a checkpoint is read only where the plan says so."""

from __future__ import annotations

import pytest

from chaos.plan.job_effect import PAUSE as PAUSES
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import GoodRun, good_run, pid_of, record
from tests.kit.runs.rolled_back_run import rolled_back_run
from tests.unit.checks.harmless import nothing_happens
from tests.unit.checks.judging import Judge, said

EXPECTED = "after the first fault a checkpoint is read only where the plan says so"
PAUSE = PlannedFault("pause", "pause", (), {"step": 4}, {"seconds": 0.1}, None, 9, PAUSES)


@pytest.fixture
def run() -> GoodRun:
    """A launch with a pause after step 4."""
    run = good_run()
    nothing_happens(run)
    run.replan(mechanism="TSP", faults=(PAUSE,), recoveries=(Recovery("TSP", ("pause",), 4),), protection=("TSP",))
    run.add("harness", record(10.35, "fault.injecting", "train", fault="pause", kind="pause"))
    return run


def load(run: GoodRun, at: float) -> None:
    run.add(
        "train-rank_3",
        record(at, "load.begin", "train", 3, pid_of("train", 3), path="checkpoints/rank_3/net-1_4.ckpt"),
    )


def test_a_pause_in_which_nobody_reads_one_passes(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert said(judgement, "resume", "pass", f"{EXPECTED}; ranks give the state | none was")
    assert not said(judgement, "resume", "pass", "states do, by digest")


def test_whoever_reads_one_in_or_after_a_pause_fails(run: GoodRun, judged: Judge) -> None:
    load(run, 10.38)
    # The pause itself is recorded by nobody here, so what fails is in doubt.
    assert said(judged(run), "resume", "unknown", "rank 3 read checkpoints/rank_3/net-1_4.ckpt (a failure if not for")


def test_what_a_launch_begins_with_is_its_own(run: GoodRun, judged: Judge) -> None:
    load(run, 8.9)
    assert said(judged(run), "resume", "pass", EXPECTED)


def test_what_was_read_as_planned_is_told(judged: Judge) -> None:
    (finding,) = said(judged(rolled_back_run()), "resume", "pass", EXPECTED)
    assert finding.seen == "4 were read where the plan says so"
