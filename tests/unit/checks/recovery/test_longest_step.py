"""A step after the recovery that hangs fails by the budget of the first step; one that is long anyway passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chaos.checks.recovery.pace import EXPECTED as PACE
from chaos.plan.job_effect import NONE
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import LAST, SAVED, GoodRun, good_run, record
from tests.kit.runs.repaired_run import uce_run
from tests.unit.checks.judging import Judge, said
from tests.unit.checks.recovery.test_pace import after_all, slowed

EXPECTED = "no step after the recovery takes longer than"
HUNG = 9
BUDGET = 10.0
"""The seconds that the first step of the good run may take."""


def hanging(seconds: float, made: Callable[[], GoodRun] = good_run, attempt: str = "resume") -> GoodRun:
    """Return a good run in which step 9 after the recovery takes so much longer."""
    run = slowed(made(), seconds, HUNG, HUNG, attempt)
    after_all(run, attempt)
    return run


@pytest.mark.parametrize(("made", "attempt"), [(good_run, "resume"), (uce_run, "train")])
def test_a_step_that_hangs_fails(judged: Judge, made: Callable[[], GoodRun], attempt: str) -> None:
    run = hanging(200.0, made, attempt)
    (finding,) = said(judged(run), "recovery", "fail", EXPECTED)
    assert finding.seen.startswith(f"step {HUNG} of rank 0 took 200.")
    assert finding.seen.endswith(f"from the end of step {HUNG - 1} on")


def test_the_longest_time_between_two_steps_is_stated(judged: Judge) -> None:
    (finding,) = said(judged(hanging(5.0)), "recovery", "pass", PACE)
    assert finding.seen.endswith("at most 5100.0 ms are between the ends of two steps after the recovery")


def test_a_step_within_the_budget_of_the_first_passes(judged: Judge) -> None:
    assert not said(judged(hanging(BUDGET - 0.1)), "recovery", "fail", EXPECTED)


def test_a_step_that_takes_as_long_without_a_fault_passes(judged: Judge) -> None:
    run = hanging(20.0)
    assert run.baseline is not None
    for records in run.baseline.values():  # an evaluation behind step 8
        late = 0
        for event in records:
            late = late or (6_000_000_000 if event["event"] == "step.begin" and event["step"] == HUNG else 0)
            event.update({key: event[key] + late for key in ("mono", "wall")})
    assert not said(judged(run), "recovery", "fail", EXPECTED)


def test_without_a_budget_of_the_first_step_nothing_is_judged(judged: Judge) -> None:
    run = hanging(200.0)
    run.replan(budget=replace(run.plan.response.budget, phases={}))
    assert not said(judged(run), "recovery", "fail", EXPECTED)


def test_a_fault_that_makes_steps_slower_itself_leaves_it_out(judged: Judge) -> None:
    run = hanging(200.0)
    load = PlannedFault("load", "cpu-load", (0,), {"step": 1}, {}, None, 15, NONE)
    run.replan(faults=(*run.plan.faults, load))
    assert not said(judged(run), "recovery", "fail", EXPECTED)


def test_a_machine_that_kept_the_job_waiting_is_unknown(judged: Judge) -> None:
    run = hanging(200.0)
    end = run.only("step.end", attempt="resume", rank=0, step=HUNG)
    waited = {"since": end["mono"] - 195_000_000_000, "until": end["mono"], "seconds": 195.0, "process": "rank 0"}
    event = record(0, "job.starved", attempt="resume", **waited)
    run.add("harness", {**event, "mono": end["mono"], "wall": end["wall"]})
    (finding,) = said(judged(run), "recovery", "unknown", EXPECTED)
    assert "kept the job waiting for a processor" in finding.seen


def test_without_the_records_of_the_steps_nothing_is_blamed(judged: Judge) -> None:
    run = hanging(200.0)
    for step in range(SAVED + 1, LAST + 1):
        run.drop("step.begin", attempt="resume", step=step)
    judgement = judged(run)
    assert not said(judgement, "recovery", "fail", EXPECTED)
    assert judgement.verdict == "unknown"


def test_a_fault_that_the_teardown_ends_hides_no_step(judged: Judge) -> None:
    """A stopped rank stays stopped until the job has ended."""
    run = hanging(200.0, uce_run, "train")
    exited = max(event["mono"] for event in run.events("rank.exit", attempt="train"))
    ending = record(0, "fault.ending", attempt="train", fault=run.plan.faults[0].id, evidence=[])
    run.add("harness", {**ending, "mono": exited + 1, "wall": exited + 1})
    assert said(judged(run), "recovery", "fail", EXPECTED)
