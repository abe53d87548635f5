"""Check ``recovery``: each phase of the recovery, and the whole, keep to their budgets."""

from __future__ import annotations

from dataclasses import replace

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "recovery") == {"pass"}


def test_a_recovery_that_takes_too_long_fails(run: GoodRun, judged: Judge) -> None:
    run.replan(budget=replace(run.plan.response.budget, total=11.8))
    assert said(judged(run), "recovery", "fail", "total ≤ 11.8 s | 11.830 s")


def test_without_the_time_of_the_fault_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("fault.injecting")
    assert said(judged(run), "recovery", "unknown", "total ≤ 60 s | no fault was injected")
