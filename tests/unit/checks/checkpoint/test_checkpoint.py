"""Check ``checkpoint``: the end-of-life checkpoint is there, from the right ranks, with the right step."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def test_a_good_recovery_passes(run: GoodRun, judged: Judge) -> None:
    assert verdicts(judged(run), "checkpoint") == {"pass"}


def test_a_replica_group_without_a_file_fails(run: GoodRun, judged: Judge) -> None:
    del run.saved[1]
    assert said(judged(run), "checkpoint", "fail", "no checkpoint of replica group [1, 3]")


def test_without_the_baseline_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.baseline = None
    assert said(judged(run), "checkpoint", "unknown", "there is no baseline history")


def test_a_save_without_its_rank_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.only("handler.enter", name="save_ckpt", rank=1).pop("rank")
    judgement = judged(run)
    assert said(judgement, "checkpoint", "unknown", "a save is recorded without its rank")
    assert not said(judgement, "checkpoint", "fail", "")
