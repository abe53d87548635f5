"""RSC: all ranks are started again, from the last periodic checkpoint that is surely finished; and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.parts.response import PHASES, Recovery
from chaos.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

JOB: dict[str, Any] = {"steps": 12, "protection": ("RSC",), "agent": True, "checkpoint_interval": 4}


def kill(step: int, phase: str = "step.begin", rank: int = 2, **more: Any) -> dict[str, Any]:
    return {"kind": "kill", "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}, **more}


@pytest.mark.parametrize(
    ("step", "phase", "goes_on_after", "lost", "one_more"),
    [
        (3, "step.begin", 0, 2, ()),
        (4, "allreduce.enter", 0, 3, ()),
        (4, "checkpoint.end", 4, 0, ()),
        (5, "step.begin", 4, 0, ()),
        (5, "allreduce.enter", 4, 0, ()),
        (5, "optimizer.update", 4, 0, (0, 1, 3)),  # whether anybody ends step 5 is a matter of time
        (5, "step.end", 4, 1, ()),
        (7, "step.end", 4, 3, ()),
        (8, "forward", 4, 3, ()),
        (9, "step.begin", 8, 0, ()),
        (11, "step.end", 8, 3, ()),
    ],
)
def test_training_goes_on_after_the_last_certain_checkpoint(
    plan: Planner, step: int, phase: str, goes_on_after: int, lost: int, one_more: tuple[int, ...]
) -> None:
    found = plan(kill(step, phase, id="death"), job=JOB)
    assert found.response.mechanism == "RSC"
    assert found.response.recoveries == (
        Recovery(
            "RSC",
            ("death",),
            goes_on_after,
            restarted=(0, 1, 2, 3),
            reads_checkpoint=goes_on_after > 0,
            trained_again=lost,
            one_more=one_more,
        ),
    )
    assert (found.checkpoint, found.resume.resumes) == (None, False)
    assert tuple(found.response.budget.phases) == PHASES["RSC"]
    assert any(
        "with RSC the cluster's agent kills all ranks and starts them again" in why for why in found.explanation.reasons
    )


PAIRS = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
"""Replica groups [0, 2] and [1, 3]."""


def test_at_the_all_reduce_another_replica_group_may_end_the_step(plan: Planner) -> None:
    found = plan(kill(7, "allreduce.enter", rank=1), job=JOB, cluster=PAIRS)
    assert (found.response.recoveries[0].trained_again, found.response.recoveries[0].one_more) == (2, (0, 2))
    assert any(
        "2 or 3 steps lost: ranks 0,2, of other replica groups, may end step 7" in why
        for why in found.explanation.reasons
    )
    both = {**kill(7, "allreduce.enter"), "target": {"ranks": (0, 1)}}
    assert plan(both, job=JOB, cluster=PAIRS).response.recoveries[0].one_more == ()


@pytest.mark.parametrize(("step", "phase"), [(8, "allreduce.enter"), (8, "checkpoint.end"), (9, "step.begin")])
def test_a_death_while_another_replica_group_may_save_is_refused(plan: Planner, step: int, phase: str) -> None:
    assert "the ranks of other replica groups may still have to save the periodic checkpoint of step 8" in (
        plan.refused(kill(step, phase), job=JOB, cluster=PAIRS)
    )
    everybody = {**kill(step, phase), "target": {"ranks": (0, 1)}}
    assert plan(everybody, job=JOB, cluster=PAIRS).response.recoveries[0].step == (
        4 if phase == "allreduce.enter" else 8
    )


def test_a_death_in_the_last_step_that_another_replica_group_may_end_is_refused(plan: Planner) -> None:
    job = {**JOB, "checkpoint_interval": None}
    text = plan.refused(kill(12, "allreduce.enter"), job=job, cluster=PAIRS)
    assert "ranks 1,3 of other replica groups may finish all 12 steps and leave" in text
    assert plan(kill(12, "allreduce.enter"), job=job).response.mechanism == "RSC"
    unprotected = {**job, "protection": (), "agent": False}
    assert "may finish all 12 steps" in plan.refused(kill(12, "allreduce.enter"), job=unprotected, cluster=PAIRS)
    assert plan(kill(12, "forward"), job=unprotected, cluster=PAIRS).response.mechanism == "none"


def test_a_later_fault_that_another_replica_group_may_reach_early_is_refused(plan: Planner) -> None:
    first, text = kill(7, "allreduce.enter"), "may hit rank 1 before the agent kills all ranks"
    for step, phase in ((7, "optimizer.update"), (7, "step.end"), (8, "forward")):
        later = kill(step, phase, rank=1)
        assert text in plan.refused(first, later, job={**JOB, "checkpoint_interval": 5}, cluster=PAIRS)
    found = plan(first, kill(9, "forward", rank=1), job={**JOB, "checkpoint_interval": 5}, cluster=PAIRS)
    assert [recovery.trained_again for recovery in found.response.recoveries] == [1, 3]


def test_without_periodic_checkpoints_training_begins_anew(plan: Planner) -> None:
    found = plan(kill(6), job={**JOB, "checkpoint_interval": None})
    assert (found.response.recoveries[0].step, found.response.recoveries[0].trained_again) == (0, 5)
    assert any("since job.checkpoint_interval is not set" in why for why in found.explanation.reasons)


def test_a_second_death_is_answered_by_a_second_restart(plan: Planner) -> None:
    found = plan(kill(6), kill(9, "forward", rank=0), job=JOB)
    assert [(recovery.step, recovery.trained_again) for recovery in found.response.recoveries] == [(4, 1), (8, 0)]


def test_a_second_death_before_a_new_checkpoint_goes_back_to_the_same_one(plan: Planner) -> None:
    found = plan(kill(6), kill(8, rank=0), job=JOB)
    assert [(recovery.step, recovery.trained_again) for recovery in found.response.recoveries] == [(4, 1), (4, 3)]


def test_past_the_limit_of_restarts_the_agent_ends_the_job(plan: Planner) -> None:
    found = plan(kill(6), kill(9, rank=0), job={**JOB, "restart_limit": 1}, expect={"checkpoint": "none"})
    assert (found.response.mechanism, [recovery.mechanism for recovery in found.response.recoveries]) == (
        "none",
        ["RSC"],
    )
    assert any("1 time, as often as job.restart_limit allows" in why for why in found.explanation.reasons)


def test_no_restart_at_all_may_be_allowed(plan: Planner) -> None:
    found = plan(kill(6), job={**JOB, "restart_limit": 0}, expect={"checkpoint": "none"})
    assert (found.response.mechanism, found.response.recoveries) == ("none", ())


@pytest.mark.parametrize("phase", ["optimizer.update", "step.end", "checkpoint.begin"])
def test_a_death_while_the_others_save_is_refused(plan: Planner, phase: str) -> None:
    with pytest.raises(ScenarioError, match="whether the save finishes depends on timing"):
        plan(kill(8, phase), job=JOB)


def test_two_faults_at_different_points_of_one_stop_are_refused(plan: Planner) -> None:
    with pytest.raises(ScenarioError, match="may never be reached: after fault"):
        plan(kill(6), kill(6, "forward", rank=1), job=JOB)


def test_an_open_trigger_is_refused(plan: Planner) -> None:
    fault = {"kind": "kill", "target": {"rank": 1}, "trigger": {"elapsed": 1.0}}
    with pytest.raises(ScenarioError, match="it is not known which periodic checkpoint is the last one"):
        plan(fault, job=JOB)


def test_a_suspended_rank_is_refused(plan: Planner) -> None:
    with pytest.raises(ScenarioError, match="still runs for the cluster's agent"):
        plan({**kill(6), "kind": "stop"}, job=JOB)


def test_rsc_needs_an_agent(plan: Planner) -> None:
    with pytest.raises(ScenarioError, match="RSC needs a cluster agent"):
        plan(kill(6), job={**JOB, "agent": False})


def test_rsc_behind_another_mechanism_is_refused(plan: Planner) -> None:
    with pytest.raises(ScenarioError, match="RSC behind TTP is not yet supported"):
        plan(kill(6), job={**JOB, "protection": ("RSC", "TTP")})


def test_an_error_of_the_device_is_a_lost_rank_to_rsc(plan: Planner) -> None:
    found = plan({**kill(6, rank=1), "kind": "uce"}, job=JOB)
    assert (found.response.mechanism, found.response.recoveries[0].step) == ("RSC", 4)


@pytest.mark.parametrize(
    ("step", "phase", "refused"), [(8, "checkpoint.end", True), (9, "forward", True), (10, "forward", False)]
)
def test_a_death_just_behind_a_save_in_the_background_is_refused(
    plan: Planner, step: int, phase: str, refused: bool
) -> None:
    job = {**JOB, "storage": {"asynchronous_saving": True}}
    if refused:
        assert "checkpoint of step 8 is just being written in the background" in plan.refused(
            kill(step, phase), job=job
        )
    else:
        assert plan(kill(step, phase), job=job).response.recoveries[0].step == 8
    assert plan(kill(step, phase), job=JOB).response.recoveries[0].step == 8
