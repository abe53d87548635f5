"""Check ``run``: the harness came to its end, and the job kept the deadlines of its waits."""

from __future__ import annotations

from tests.kit.good_run import GoodRun, record
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "run") == {"pass"}


def test_a_job_that_does_not_end_in_time_fails(run: GoodRun, judged: Judge) -> None:
    run.add("harness", record(20.0, "deadline.expired", "train", name="end", seconds=300, detail="it hangs"))
    assert said(judged(run), "run", "fail", "deadline end (300 s) is kept | it ran out: it hangs")


def test_without_the_end_of_the_harness_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("run.end")
    assert said(judged(run), "run", "unknown", "the history has no run.end")
