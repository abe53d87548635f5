"""The budgets of the restart of a job that no mechanism answers: only those that the scenario writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.parts.response import RESTART, Budget
from chaos.plan.phases import is_restart, phase_names
from chaos.plan.render import render
from chaos.plan.traits import JobTraits

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

KILL = {"id": "kill", "kind": "kill", "target": {"rank": 1}, "trigger": {"step": 7}}
SCENARIO: dict[str, Any] = {
    "cluster": {"ranks": 2},
    "job": {"steps": 12, "protection": (), "checkpoint_interval": 4},
}
RESUMES = {"resume": {"step": 5}}


@pytest.fixture
def plan(plan: Planner) -> Planner:
    plan.traits = JobTraits(frozenset({"step.begin", "step.end"}), "mindspore", resumes_periodic=True)
    return plan


def test_a_restart_has_phases_and_no_budget_of_a_profile(plan: Planner) -> None:
    made = plan(KILL, **SCENARIO, expect=RESUMES)
    assert (made.response.mechanism, made.resume.resumes, is_restart(made)) == ("none", True, True)
    assert phase_names(made) == RESTART
    assert made.response.budget == Budget(None, {})


def test_the_budgets_of_a_restart_are_those_of_the_scenario(plan: Planner) -> None:
    plan.lines = {"expect.recovery.phases.load": 31, "expect.recovery.rollback": 33}
    written = {"total": "90s", "phases": {"load": "4s", "first step": "2s"}, "rollback": 3}
    made = plan(KILL, **SCENARIO, expect={**RESUMES, "recovery": written})
    assert made.response.budget == Budget(90.0, {"load": 4.0, "first step": 2.0}, 3)
    assert (made.explanation.lines["recovery.load"], made.explanation.lines["recovery.rollback"]) == (31, 33)
    assert "90 s in all; load 4, first step 2" in render(made)
    assert "3 steps at most" in render(made)
    assert loads(dumps(made)) == made


def test_a_budget_for_a_phase_alone_keeps_its_line(plan: Planner) -> None:
    plan.lines = {"expect.recovery.phases.load": 31}
    made = plan(KILL, **SCENARIO, expect={**RESUMES, "recovery": {"phases": {"load": "4s"}}})
    assert (made.response.budget.total, made.explanation.lines["recovery.load"]) == (None, 31)


@pytest.mark.parametrize(
    ("recovery", "message"),
    [
        ({"phases": {"lod": "4s"}}, "the restart of a job has no phase 'lod'"),
        ({"phases": {"save": "4s"}}, "the restart of a job has no phase 'save'"),
    ],
)
def test_a_phase_that_a_restart_does_not_have_is_refused(plan: Planner, recovery: dict[str, Any], message: str) -> None:
    text = plan.refused(KILL, **SCENARIO, expect={**RESUMES, "recovery": recovery})
    assert message in text


def test_a_budget_is_refused_where_the_job_is_not_started_again(plan: Planner) -> None:
    for recovery in ({"total": "9s"}, {"phases": {"load": "4s"}}, {"rollback": 3}):
        job = {**SCENARIO["job"], "resume": False}
        text = plan.refused(KILL, cluster={"ranks": 2}, job=job, expect={"recovery": recovery})
        assert "no mechanism acts and that the job is not started again" in text


def test_an_end_of_life_checkpoint_without_a_resume_has_no_budget_for_steps_trained_again(plan: Planner) -> None:
    job = {"steps": 12, "protection": ("TTP",), "resume": False}
    text = plan.refused(KILL, cluster={"ranks": 2}, job=job, expect={"recovery": {"rollback": 0}})
    assert "no step is trained again: the job is not started again" in text
