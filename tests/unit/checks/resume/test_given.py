"""A rank may be given what another one of its replica group has loaded: then its state tells whether it was."""

from __future__ import annotations

import pytest

from tests.kit.runs.good_run import VICTIM, GoodRun, good_run
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.judging import Judge, not_passed, said

GIVEN = 3
"""Loads nothing; rank 1, of the same replica group, does."""


@pytest.fixture(params=["end-of-life", "periodic"])
def run(request: pytest.FixtureRequest) -> GoodRun:
    run = good_run() if request.param == "end-of-life" else restored_run()
    for event in ("load.begin", "load.end"):
        run.drop(event, attempt="resume", rank=GIVEN)
    return run


def test_a_rank_that_goes_on_with_what_another_one_has_loaded_passes(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert not_passed(judgement) == []
    assert said(judgement, "resume", "pass", "| 3 ranks did, rank 3 got theirs from one that did")
    assert said(judgement, "resume", "pass", "| 4 ranks compared by digest")


def test_a_rank_that_goes_on_with_another_state_fails(run: GoodRun, judged: Judge) -> None:
    run.only("initial", attempt="resume", rank=GIVEN)["parameters"]["moments.layer1.bias"] = "0" * 32
    seen = "1 of 6 parameters of rank 3 are not the file's: moments.layer1.bias"
    assert said(judged(run), "resume", "fail", seen)


def test_without_its_state_before_the_first_step_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.drop("initial", attempt="resume", rank=GIVEN)
    assert said(judged(run), "resume", "unknown", "no digests of rank 3 before its first step")


def test_where_nobody_of_its_replica_group_has_loaded_anything_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    for event in ("load.begin", "load.end"):
        run.drop(event, attempt="resume", rank=1)
    assert said(judged(run), "resume", "unknown", "no load of rank 3 is recorded")


@pytest.mark.parametrize("event", ["load.begin", "load.end"])
def test_a_load_of_which_only_a_part_is_recorded_is_no_state_that_was_given(judged: Judge, event: str) -> None:
    run = good_run()
    run.drop(event, attempt="resume", rank=VICTIM)
    judgement = judged(run)
    assert judgement.verdict != "pass"
    assert not said(judgement, "resume", "pass", "got theirs from one that did")
