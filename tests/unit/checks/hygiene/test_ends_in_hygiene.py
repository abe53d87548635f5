"""A rank that a fault has ended must have ended in just that way; one that hangs may have any status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.plan.job_effect import DEATH, HANG, JobEffect
from tests.kit.runs.good_run import VICTIM, GoodRun
from tests.unit.checks.judging import Judge, said


def ended(run: GoodRun, kind: str, effect: JobEffect, how: dict[str, Any], **parameters: Any) -> GoodRun:
    """The good run, its rank being ended by another kind of fault, in some way."""
    (kill,) = run.plan.faults
    run.replan(faults=(replace(kill, kind=kind, effect=effect, parameters=parameters),))
    run.only("rank.exit", attempt="train", rank=VICTIM).update({"signal": None, "code": None, **how})
    return run


def blamed(run: GoodRun, judged: Judge) -> bool:
    """Whether hygiene objects; it can blame nobody here, since the act itself is not in this run."""
    judgement = judged(run)
    verdicts = [verdict for verdict in ("unknown", "fail") if said(judgement, "hygiene", verdict, f"rank {VICTIM} of")]
    return bool(verdicts)


@pytest.mark.parametrize(
    ("kind", "how", "parameters"),
    [
        ("segfault", {"signal": 11}, {}),
        ("abort", {"signal": 6}, {}),
        ("oom", {"signal": 9}, {}),
        ("exit", {"code": 1}, {}),
        ("exit", {"code": 7}, {"code": 7}),
    ],
)
def test_the_end_of_the_kind_is_as_planned_and_no_other(
    run: GoodRun, judged: Judge, kind: str, how: dict[str, Any], parameters: dict[str, Any]
) -> None:
    assert not blamed(ended(run, kind, DEATH, how, **parameters), judged)
    for other in ({"signal": 15}, {"code": 3}, {"code": 0}):
        assert blamed(ended(run, kind, DEATH, other, **parameters), judged), other


@pytest.mark.parametrize("how", [{"signal": 9}, {"code": 1}, {"code": 0}])
def test_a_rank_that_hangs_may_have_any_status(run: GoodRun, judged: Judge, how: dict[str, Any]) -> None:
    assert not blamed(ended(run, "hang", HANG, how), judged)
