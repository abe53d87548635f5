"""Check ``mechanism``: the planned mechanism acted, once, in its order, and no other did."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "mechanism") == {"pass"}


def test_a_checkpoint_that_is_renamed_twice_fails(run: GoodRun, judged: Judge) -> None:
    run.log.append((11.7, "finish rename, rank:1"))
    assert said(judged(run), "mechanism", "fail", "renamed 2 times by the SDK's log")


def test_without_the_exit_of_a_rank_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("rank.exit", attempt="train", rank=3)
    assert said(judged(run), "mechanism", "unknown", "no exit of rank 3 was recorded")
