"""Check ``history``: the record is whole, or nothing that is judged by it can be believed. It never fails a run."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "history") == {"pass"}


def test_a_plan_that_was_changed_since_is_no_evidence_and_blames_nobody(run: GoodRun, judged: Judge) -> None:
    run.only("run.start").update(plan="0" * 32)
    judgement = judged(run)
    assert said(judgement, "history", "unknown", "the plan is unchanged since the run | it was changed")
    assert "fail" not in verdicts(judgement, "history")


def test_without_the_record_of_its_start_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("run.start")
    assert said(judged(run), "history", "unknown", "no run.start of the harness")


def test_steps_that_a_rank_could_not_count_are_no_evidence_and_blame_nobody(run: GoodRun, judged: Judge) -> None:
    begun = next(iter(run.events("train.begin", attempt="train", rank=1)))
    run.add("train-rank_1", {**begun, "event": "steps.unclear", "reason": "there are two optimizers"})
    judgement = judged(run)
    assert said(
        judgement, "history", "unknown", "the steps of every rank are counted | those of rank 1 in attempt train"
    )
    assert "fail" not in verdicts(judgement, "history")
