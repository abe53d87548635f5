"""A save that the storage must refuse: tried, and failed for that reason and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.plan.job_effect import STORAGE_FULL, STORAGE_READ_ONLY, VOLUME_GONE, JobEffect
from chaos.plan.parts.response import Recovery
from tests.kit.runs.good_run import FAULT, SAVED, GoodRun
from tests.unit.checks.harmless import EFFECTS, with_fault
from tests.unit.checks.judging import Judge, said

EXPECTED = "the save fails because of fault first"
ERRORS = {STORAGE_FULL: "[Errno 28] No space left on device", STORAGE_READ_ONLY: "[Errno 30] Read-only file system"}


@pytest.fixture(params=list(ERRORS), ids=str)
def effect(request: pytest.FixtureRequest) -> JobEffect:
    made: JobEffect = request.param
    return made


@pytest.fixture
def refused(run: GoodRun, effect: JobEffect) -> GoodRun:
    """Both savers were refused; the plan said so."""
    return refused_by(run, effect, ERRORS[effect])


def refused_by(run: GoodRun, effect: JobEffect, error: str) -> GoodRun:
    with_fault(run, next(kind for kind, made in EFFECTS.items() if made == effect))
    run.replan(
        mechanism="none",
        checkpoint=None,
        recoveries=(Recovery("TTP", (FAULT,), SAVED, succeeds=False),),
    )
    run.without_resume()
    run.saved.clear()
    for event in run.events("handler.exit", name="save_ckpt"):
        event.update(ok=False, error=error)
    run.drop("checkpoint.end")
    for name in ("handler.enter", "handler.exit"):
        run.drop(name, name="rename")
    return run


def test_it_failed_because_of_the_storage(refused: GoodRun, judged: Judge) -> None:
    judgement = judged(refused)
    assert said(judgement, "mechanism", "pass", EXPECTED)
    assert said(judgement, "mechanism", "pass", "TTP is tried and fails")


def test_another_reason_is_a_failure(refused: GoodRun, judged: Judge, effect: JobEffect) -> None:
    other = next(text for name, text in ERRORS.items() if name != effect)
    refused.only("handler.exit", name="save_ckpt", rank=1)["error"] = other
    assert said(judged(refused), "mechanism", "fail", f"{EXPECTED} | save_ckpt failed on rank 1: {other}")


def test_without_a_recorded_error_nothing_is_known(refused: GoodRun, judged: Judge) -> None:
    refused.drop("handler.exit", name="save_ckpt")
    assert said(judged(refused), "mechanism", "unknown", f"{EXPECTED} | no handler has recorded an error")


def test_a_save_that_ended_well_was_not_refused(refused: GoodRun, judged: Judge) -> None:
    for event in refused.events("handler.exit", name="save_ckpt"):
        event.update(ok=True, error=None)
    judgement = judged(refused)
    assert said(judgement, "mechanism", "fail", "every handler of TTP that was called ended well")
    assert said(judgement, "mechanism", "unknown", EXPECTED)


MISSING = "[Errno 2] No such file or directory: 'ttp_rank_0-1_5.ckpt'"


def volume_gone(run: GoodRun, *hit: int) -> GoodRun:
    """The savers, ranks 0 and 1, were refused; the volume was taken from the node of the ranks ``hit``."""
    refused_by(run, VOLUME_GONE, MISSING)
    (first, *others) = run.plan.faults
    run.replan(faults=(replace(first, ranks=hit), *others))
    return run


def test_a_volume_that_was_taken_is_the_reason_of_its_own_ranks_alone(run: GoodRun, judged: Judge) -> None:
    assert said(judged(volume_gone(run, 0, 1)), "mechanism", "pass", EXPECTED)
    run.replan(faults=(replace(run.plan.faults[0], ranks=(0,)), *run.plan.faults[1:]))
    assert said(judged(run), "mechanism", "fail", f"{EXPECTED} | save_ckpt failed on rank 1: [Errno 2]")


def test_a_volume_that_no_saver_has_lost_is_no_reason_to_be_looked_for(run: GoodRun, judged: Judge) -> None:
    judgement = judged(volume_gone(run, 2, 3))
    assert not said(judgement, "mechanism", "fail", EXPECTED) and not said(judgement, "mechanism", "unknown", EXPECTED)
    assert said(judgement, "mechanism", "pass", "TTP is tried and fails")
