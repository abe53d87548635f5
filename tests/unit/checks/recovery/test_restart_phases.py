"""The restart of a job that no mechanism answers: its phases are measured, judged by budgets, and never guessed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.checks.judge import Judgement
from chaos.plan.parts.response import RESTART
from tests.kit.runs.good_run import GoodRun, record
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.judging import Judge, said


@pytest.fixture
def run() -> GoodRun:
    """Rank 2 is killed, the other ranks fail, and the job is started again from periodic checkpoints."""
    return restored_run()


def seconds(judgement: Judgement) -> dict[str, float | None]:
    return {phase.name: phase.seconds for phase in judgement.recovery.phases}


def left_out(judgement: Judgement) -> dict[str, str]:
    return {
        exclusion.what.removeprefix("the time of ").removesuffix(", which was not measured"): exclusion.reason
        for exclusion in judgement.not_checked
        if exclusion.check == "recovery" and exclusion.what.endswith("not measured")
    }


def budgeted(run: GoodRun, **changes: Any) -> None:
    run.replan(budget=replace(run.plan.response.budget, **changes))


def test_every_phase_of_a_restart_is_measured_and_they_add_up_to_the_total(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    measured = seconds(judgement)
    assert (judgement.verdict, judgement.recovery.mechanism, tuple(measured)) == ("pass", "restart", RESTART)
    known = [value for value in measured.values() if value is not None]
    assert judgement.recovery.total is not None
    assert len(known) == len(RESTART)
    assert sum(known) == pytest.approx(judgement.recovery.total / 1e9)
    assert measured["load"] == pytest.approx(0.43)
    assert not left_out(judgement)


def test_a_budget_that_the_scenario_writes_is_kept_or_fails_by_a_phase_and_by_the_total(
    run: GoodRun, judged: Judge
) -> None:
    budgeted(run, phases={"load": 0.44, "compile": 1.4}, total=5.0)
    judgement = judged(run)
    assert said(judgement, "recovery", "pass", "load ≤ 0.44 s | 0.430 s")
    assert said(judgement, "recovery", "fail", "compile ≤ 1.4 s | 1.500 s")
    assert said(judgement, "recovery", "fail", "total ≤ 5 s | 11")


def test_a_phase_without_evidence_is_left_out_with_its_reason_and_never_zero(run: GoodRun, judged: Judge) -> None:
    run.drop("load.begin")
    run.drop("load.end")
    judgement = judged(run)
    assert seconds(judgement)["load"] is None
    assert left_out(judgement)["load"] == "the end of the load is recorded for 0 of 4 ranks"
    assert left_out(judgement)["compile"].startswith("its beginning is not known")
    assert not said(judgement, "recovery", "pass", "load")


def test_a_phase_without_evidence_is_unknown_where_it_has_a_budget(run: GoodRun, judged: Judge) -> None:
    run.drop("load.begin")
    run.drop("load.end")
    budgeted(run, phases={"load": 60.0})
    judgement = judged(run)
    assert said(judgement, "recovery", "unknown", "load ≤ 60 s | the end of the load is recorded for 0 of 4 ranks")
    assert "load" not in left_out(judgement)


def test_without_the_fault_s_own_record_nothing_is_measured(run: GoodRun, judged: Judge) -> None:
    run.drop("fault.injecting")
    judgement = judged(run)
    assert set(seconds(judgement).values()) == {None}
    assert set(left_out(judgement)) == {*RESTART, "total"}
    assert judgement.verdict == "unknown"


def test_the_fault_is_detected_when_a_rank_that_it_did_not_hit_fails(run: GoodRun, judged: Judge) -> None:
    before = seconds(judged(run))
    act = next(run.events("fault.injecting", fault="kill-1"))
    error = {**act, "event": "error.uncaught", "rank": 0, "pid": 1000, "error": "ConnectionError: lost", "base": ""}
    run.add("train-rank_0", {**error, "mono": act["mono"] + 40_000_000})
    after = seconds(judged(run))
    assert after["detection"] == pytest.approx(0.04)
    assert before["detection"] is not None and before["exit"] is not None and after["exit"] is not None
    assert before["detection"] + before["exit"] == pytest.approx(0.04 + after["exit"])


def test_the_error_of_the_rank_that_was_hit_is_the_fault_and_no_detection(run: GoodRun, judged: Judge) -> None:
    before = seconds(judged(run))
    act = next(run.events("fault.injecting", fault="kill-1"))
    error = {**act, "event": "error.uncaught", "rank": 2, "pid": 1002, "error": "RuntimeError: hit", "base": ""}
    run.add("train-rank_2", {**error, "mono": act["mono"] + 1_000_000})
    assert seconds(judged(run)) == before


def test_an_end_by_the_harness_s_own_deadline_measures_nothing(run: GoodRun, judged: Judge) -> None:
    act = next(run.events("fault.injecting", fault="kill-1"))
    expired = record(0, "deadline.expired", attempt="train", name="end", seconds=1.0, limit="1 s", detail="")
    run.add("harness", {**expired, "mono": act["mono"] + 1, "wall": act["wall"] + 1})
    judgement = judged(run)
    assert seconds(judgement)["detection"] is None
    assert left_out(judgement)["detection"] == "the harness ended the job at the deadline end"


@pytest.mark.parametrize(("budget", "verdict"), [(3, "pass"), (2, "fail")])
def test_the_steps_trained_again_have_a_budget(run: GoodRun, judged: Judge, budget: int, verdict: str) -> None:
    for event in ("step.begin", "step.end"):
        for step in run.events(event, attempt="resume"):
            step["step"] -= 3
    budgeted(run, rollback=budget)
    assert said(judged(run), "recovery", verdict, f"steps trained again ≤ {budget} | 3")


def test_the_steps_trained_again_are_unknown_when_no_rank_has_trained_on(run: GoodRun, judged: Judge) -> None:
    run.drop("train.begin", attempt="resume")
    budgeted(run, rollback=2)
    assert said(judged(run), "recovery", "unknown", "no rank is recorded to have trained on after the fault")


def test_a_rank_without_a_record_may_have_trained_more_steps_again(run: GoodRun, judged: Judge) -> None:
    run.drop("train.begin", attempt="resume", rank=3)
    budgeted(run, rollback=2)
    assert said(judged(run), "recovery", "unknown", "0 at least: nothing shows where rank 3 trained on")
    for event in ("step.begin", "step.end"):
        for step in run.events(event, attempt="resume", rank=0):
            step["step"] -= 3
    assert said(judged(run), "recovery", "fail", "steps trained again ≤ 2 | 3")


def test_a_file_that_is_read_while_the_job_trains_does_not_belong_to_its_load(run: GoodRun, judged: Judge) -> None:
    before = seconds(judged(run))
    load = run.only("load.end", rank=0)
    run.add("resume-rank_0", {**load, "mono": load["mono"] + 8_000_000_000, "wall": load["wall"] + 8_000_000_000})
    assert seconds(judged(run)) == before


def test_a_job_that_is_not_started_again_has_no_recovery_to_measure(run: GoodRun, judged: Judge) -> None:
    run.without_resume()
    judgement = judged(run)
    assert (judgement.recovery.phases, judgement.recovery.reason) == (
        (),
        "no mechanism acts, and the job is not started again",
    )
