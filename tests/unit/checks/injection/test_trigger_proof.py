"""A trigger with alternatives: at least one of them held, by evidence, when the fault was made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.kit.runs.good_run import SAVED, GoodRun
from tests.unit.checks.judging import Judge, not_passed, said

HERE: dict[str, Any] = {"step": SAVED, "phase": "step.end"}
LATER: dict[str, Any] = {"step": 9, "phase": "step.begin"}
SOON, LATE = {"elapsed": 0.4}, {"elapsed": 500.0}


def made(run: GoodRun, trigger: dict[str, Any], *, held: bool) -> GoodRun:
    """The good run with that trigger; ``held``: rank 2 was at the barrier of step 5, else at none."""
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, trigger=trigger),))
    if not held:
        run.drop("barrier.reached")
        run.only("fault.landed").update(step=None, phase=None)
        run.only("fault.landed")["evidence"][0]["barrier"] = None
    return run


@pytest.mark.parametrize(
    ("trigger", "held"),
    [
        ({"any": [LATER, SOON]}, False),
        ({"any": [HERE, LATE]}, True),
        ({"any": [{"all": [HERE, SOON]}, LATE]}, True),
        ({"all": [{"any": [LATER, SOON]}, {"elapsed": 0.1}]}, False),
        ({**HERE, "any": [SOON, LATE]}, True),
        ({"any": [{"log": {"contains": "never"}}, SOON]}, False),
    ],
)
def test_one_alternative_that_held_is_enough(trigger: dict[str, Any], held: bool, run: GoodRun, judged: Judge) -> None:
    assert not_passed(judged(made(run, trigger, held=held))) == []


@pytest.mark.parametrize(
    ("trigger", "held", "reason"),
    [
        ({"any": [LATER, LATE]}, False, "no alternative of the trigger held: not held at step 9, phase step.begin; "),
        ({"any": [HERE, LATE]}, False, "not held at step 5, phase step.end; injected "),
        ({"any": [{"after": "other"}, LATE]}, True, "injected before fault other had landed; injected "),
        ({"any": [{"healed": "other"}, LATE]}, True, "injected before fault other had ended; injected "),
        ({"any": [{"all": [HERE, LATE]}, LATER]}, True, "no alternative of the trigger held: injected "),
        ({"all": [{"any": [HERE, SOON]}, LATE]}, True, " s after the first step"),
        ({**LATER, "any": [SOON, LATE]}, False, "not held at step 9, phase step.begin"),
        ({**HERE, "any": [LATER, LATE]}, True, "no alternative of the trigger held: not held at step 9"),
        ({"any": [{"log": {"contains": "never"}}, LATE]}, False, "no log of the job contains 'never'; injected "),
    ],
)
def test_without_an_alternative_that_held_the_fault_is_not_proven(
    trigger: dict[str, Any], held: bool, reason: str, run: GoodRun, judged: Judge
) -> None:
    judgement = judged(made(run, trigger, held=held))
    assert said(judgement, "injection", "unknown", reason), not_passed(judgement)
    assert judgement.verdict == "unknown"
