"""Check ``resume``: training goes on at the step after the saved one, with the saved state."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "resume") == {"pass"}


def test_a_step_that_does_not_end_fails(run: GoodRun, judged: Judge) -> None:
    run.drop("step.end", attempt="resume", rank=1, step=6)
    assert said(judged(run), "resume", "fail", "rank 1 began step 6 in attempt resume and did not end it")


def test_without_the_load_of_a_rank_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("load.begin", rank=2)
    assert said(judged(run), "resume", "unknown", "no load of rank 2 is recorded")
