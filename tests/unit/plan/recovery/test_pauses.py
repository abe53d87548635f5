"""Pauses in the plan: nothing is lost; a rank that is lost meanwhile is answered by another mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

JOB = {"protection": ("TTP", "TSP")}
EVERYONE = {"ranks": (0, 1, 2, 3)}


def pause(step: int = 5, **other: Any) -> dict[str, Any]:
    fault = {"id": "pause", "kind": "pause", "target": EVERYONE, "trigger": {"step": step}}
    return {**fault, "parameters": {"seconds": 2}, **other}


def kill(**trigger: Any) -> dict[str, Any]:
    return {"id": "kill", "kind": "kill", "target": {"rank": 2}, "trigger": trigger}


def test_a_pause_is_answered_by_tsp_and_nothing_is_lost(plan: Planner) -> None:
    found = plan(pause(), job=JOB)
    assert (found.response.mechanism, found.checkpoint, found.resume.resumes) == ("TSP", None, False)
    assert [(recovery.mechanism, recovery.step, recovery.succeeds) for recovery in found.response.recoveries] == [
        ("TSP", None, True)
    ]
    assert found.response.budget.phases.keys() == {"stop", "first step"}
    assert found.response.budget.total is None  # how long it lasts is the scenario's choice
    assert any(
        "pauses all ranks after the same step for 2 s, and they go on" in reason for reason in found.explanation.reasons
    )


def test_the_network_switch_is_told(plan: Planner) -> None:
    found = plan(pause(parameters={"seconds": 0.5, "switch": True}), job=JOB)
    assert any("in which they switch to the backup network" in reason for reason in found.explanation.reasons)


def test_a_death_during_the_pause_is_answered_by_ttp_at_the_step_of_the_pause(plan: Planner) -> None:
    found = plan(pause(), kill(after="pause"), job=JOB)
    assert [(recovery.mechanism, recovery.faults, recovery.succeeds) for recovery in found.response.recoveries] == [
        ("TSP", ("pause",), False),
        ("TTP", ("kill",), True),
    ]
    assert found.checkpoint is not None and found.checkpoint.step is None
    assert found.checkpoint.entitled == {0: (0, 1, 3)}


def test_a_later_fault_has_its_own_answer(plan: Planner) -> None:
    found = plan(pause(2), kill(step=6), job=JOB)
    assert [recovery.mechanism for recovery in found.response.recoveries] == ["TSP", "TTP"]
    assert [recovery.succeeds for recovery in found.response.recoveries] == [True, True]


@pytest.mark.parametrize(
    ("fault", "job", "said"),
    [
        (pause(), {"protection": ("TTP",)}, "TSP is not on"),
        (pause(target={"ranks": (0, 1)}), JOB, "a pause stops all 4 ranks"),
        (pause(parameters={}), JOB, "does not say for how many seconds"),
        (pause(parameters={"seconds": 0}), JOB, "does not say for how many seconds"),
        (pause(parameters={"seconds": True}), JOB, "does not say for how many seconds"),
        (pause(parameters={"seconds": 2, "switch": "yes"}), JOB, "switch is true or false"),
        (pause(parameters={"seconds": 2, "length": 3}), JOB, "has no parameter 'length'"),
        (pause(10), JOB, "is never reached: the job ends with step 10"),
        (pause(8), JOB, "may leave no step to go on with"),
    ],
)
def test_a_pause_that_cannot_be_made_is_refused(
    plan: Planner, fault: dict[str, Any], job: dict[str, Any], said: str
) -> None:
    assert said in plan.refused(fault, job=job)


def test_a_fault_that_may_come_before_or_after_the_pause_is_refused(plan: Planner) -> None:
    assert "may come before or after the pause" in plan.refused(pause(), kill(step=6), job=JOB)
    plan(pause(), kill(step=8), job=JOB)


def test_only_losses_can_come_during_a_pause(plan: Planner) -> None:
    mark = {"id": "mark", "kind": "mark", "target": {"rank": 2}, "trigger": {"after": "pause"}}
    assert "in which a rank can only be lost" in plan.refused(pause(), mark, job=JOB)
