"""Check ``injection``: the planned faults were made, once, where and when they were planned."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "injection") == {"pass"}


def test_a_fault_that_lands_twice_fails(run: GoodRun, judged: Judge) -> None:
    run.add("harness", {**(again := run.only("fault.landed")), "mono": again["mono"] + 1})
    assert said(judged(run), "injection", "fail", "injected twice: 2 landings")


def test_without_the_landing_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("fault.landed")
    assert said(judged(run), "injection", "unknown", "no landing of this fault")
