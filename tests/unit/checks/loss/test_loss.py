"""Check ``loss``: loss, gradients and weights go on as in the run without a fault."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "loss") == {"pass"}


def test_a_loss_that_is_no_number_fails(run: GoodRun, judged: Judge) -> None:
    run.only("digest", attempt="resume", rank=2, step=9)["loss"] = "nan"
    assert said(judged(run), "loss", "fail", "rank 2 has loss nan at step 9")


def test_without_the_gradients_of_a_rank_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("digest", attempt="resume", rank=1)
    assert said(judged(run), "loss", "unknown", "no gradients of rank 1")
