"""What the plan leaves out of a verdict is said, and only the plan can leave something out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.checks import judge as judging
from chaos.checks.scope import NotChecked, not_checked, trains_nothing
from chaos.plan.job_effect import NONE, SILENT, STORAGE_FULL, JobEffect
from chaos.plan.model import Plan
from tests.kit.plans import changed
from tests.kit.runs.good_run import GoodRun, a_plan
from tests.unit.checks.judging import Judge


def planned(step: int, phase: str, mechanism: str = "none") -> Plan:
    plan = a_plan()
    fault = replace(plan.faults[0], trigger={"step": step, "phase": phase})
    return changed(plan, faults=(fault,), mechanism=mechanism, checkpoint=None, resumes=False)


@pytest.mark.parametrize("phase", ["step.begin", "forward", "allreduce.enter"])
def test_a_fault_before_the_first_all_reduce_lets_nobody_train(phase: str) -> None:
    plan = planned(1, phase)
    assert trains_nothing(plan)
    assert {"loss", "consistency"} <= {exclusion.check for exclusion in not_checked(plan)}


@pytest.mark.parametrize(
    "plan", [planned(1, "step.end"), planned(2, "forward"), planned(1, "forward", "TTP"), a_plan()]
)
def test_any_other_fault_leaves_losses_to_compare(plan: Plan) -> None:
    assert not trains_nothing(plan)
    assert "loss" not in {exclusion.check for exclusion in not_checked(plan)}


@pytest.mark.parametrize("effect", [NONE, STORAGE_FULL, SILENT], ids=str)
def test_a_fault_that_stops_nobody_lets_the_others_train(effect: JobEffect) -> None:
    plan = planned(1, "forward")
    fault = replace(plan.faults[0], effect=effect)
    assert not trains_nothing(replace(plan, faults=(fault,)))


def test_a_trigger_that_also_waits_for_time_may_fire_late() -> None:
    plan = planned(1, "forward")
    fault = replace(plan.faults[0], trigger={"elapsed": 5.0})
    assert not trains_nothing(replace(plan, faults=(fault,)))


def test_where_no_gradients_are_seen_they_are_not_judged_and_that_is_said() -> None:
    assert "gradients" not in {exclusion.what for exclusion in not_checked(a_plan())}
    assert "gradients" in {exclusion.what for exclusion in not_checked(changed(a_plan(), gradients=False))}


def test_what_could_not_be_told_of_a_run_is_told_with_the_error(
    run: GoodRun, judged: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> list[NotChecked]:
        raise KeyError("step\x1b" * 1000)

    left = judged(run).not_checked
    monkeypatch.setattr(judging, "pace_left_out", breaks)
    (exclusion,) = set(judged(run).not_checked) - set(left)
    assert exclusion.check == "recovery" and exclusion.reason.startswith("KeyError: 'step")
    assert len(exclusion.reason) <= 500 and exclusion.reason.isprintable()
    others = {candidate for candidate in left if candidate.check == "mechanism"}
    assert others and others <= set(judged(run).not_checked), "one error keeps the others from being told"
