"""With pipeline stages only the losses that are valid are judged: those of the last stage."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, not_passed, said


def invalid_losses(run: GoodRun, rank: int, text: Callable[[int], str]) -> None:
    """What a stage gives that is not the last: anything."""
    for record in run.events("digest", rank=rank):
        record["loss"] = text(record["step"])


@pytest.mark.parametrize("value", ["nan", "-0x1.8p+3"])
def test_what_a_stage_gives_that_is_not_the_last_is_no_loss(judged: Judge, run: GoodRun, value: str) -> None:
    run.replan(loss_ranks=(2, 3))
    invalid_losses(run, 0, lambda step: value)
    judgement = judged(run)
    assert not_passed(judgement) == []
    assert said(judgement, "loss", "pass", "losses on 2 ranks do")


def test_a_wrong_loss_of_the_last_stage_still_fails(judged: Judge, run: GoodRun) -> None:
    run.replan(loss_ranks=(2, 3))
    invalid_losses(run, 3, lambda step: "nan")
    assert said(judged(run), "loss", "fail", "rank 3 has loss nan")


def test_where_the_last_stage_has_no_loss_nothing_is_known(judged: Judge, run: GoodRun) -> None:
    run.replan(loss_ranks=(2, 3))
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for record in (event for records in files.values() for event in records):
            if record["event"] == "digest" and record["rank"] in (2, 3):
                record["loss"] = None
    assert said(judged(run), "loss", "unknown", "not one loss can be compared")
    assert said(judged(run), "loss", "unknown", "no loss was recorded")


def test_without_stages_every_loss_counts(judged: Judge, run: GoodRun) -> None:
    invalid_losses(run, 0, lambda step: "nan")
    assert said(judged(run), "loss", "fail", "rank 0 has loss nan")
