"""In a job that accumulates gradients the SDK goes back to the last update; a checkpoint may hold a step behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan import io
from chaos.plan.render import render

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

TWO = {"steps_per_update": 2}


def at(kind: str, step: int, phase: str, rank: int = 2) -> dict[str, Any]:
    return {"kind": kind, "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}}


@pytest.mark.parametrize(
    ("kind", "step", "phase", "after"),
    [
        ("uce", 7, "forward", 6),
        ("uce", 8, "forward", 6),
        ("uce", 8, "optimizer.update", 8),
        ("uce", 8, "step.end", 8),
        ("uce", 9, "step.end", 8),
        ("hcce", 7, "forward", 6),
        ("hcce", 8, "forward", 6),
        ("hcce", 9, "forward", 8),
    ],
)
def test_an_online_repair_goes_back_to_the_last_update(
    plan: Planner, kind: str, step: int, phase: str, after: int
) -> None:
    found = plan(at(kind, step, phase), job={**TWO, "protection": ("UCE", "HCCE")})
    assert [recovery.step for recovery in found.response.recoveries] == [after]
    answer = any(
        f"training goes on after step {after}, with nothing accumulated" in reason
        for reason in found.explanation.reasons
    )
    assert answer == ((step, phase) in ((8, "forward"), (9, "step.end")))


def test_a_lost_rank_is_replaced_after_the_last_update(plan: Planner) -> None:
    job = {**TWO, "protection": ("ARF",), "agent": True}
    assert [recovery.step for recovery in plan(at("kill", 8, "forward"), job=job).response.recoveries] == [6]


@pytest.mark.parametrize(
    ("step", "phase", "lowest", "highest"),
    [(6, "step.end", 6, 7), (7, "forward", 6, 7), (7, "step.end", 7, 7), (8, "forward", 7, 7)],
)
def test_survivors_may_train_up_to_the_next_update_before_they_save(
    plan: Planner, step: int, phase: str, lowest: int, highest: int
) -> None:
    found = plan(at("kill", step, phase), job=TWO)
    assert found.checkpoint is not None
    open_ = lowest < highest
    assert found.checkpoint.step == (None if open_ else lowest)
    assert found.resume.resume_step == (None if open_ else lowest + 1)
    assert open_ == any(f"one of {lowest} to {highest}" in reason for reason in found.explanation.reasons)
    for saved in (lowest, highest):
        expect = {"checkpoint": {"step": saved}, "resume": {"step": saved + 1}}
        assert plan(at("kill", step, phase), job=TWO, expect=expect).resume.resume_step == saved + 1


def test_a_checkpoint_within_an_accumulation_lies_where_the_sdk_counts(plan: Planner) -> None:
    found = plan(at("kill", 8, "forward"), job=TWO)
    assert found.checkpoint is not None
    assert found.checkpoint.directory == "ttp_saved_checkpoints-step_6"
    assert found.checkpoint.files[0] == "ttp_saved_checkpoints-step_6/rank_0/ttp_rank_0-1_7.ckpt"


def test_before_the_first_update_nothing_can_be_saved(plan: Planner) -> None:
    said = plan.refused(at("kill", 2, "forward"), job=TWO)
    assert "the ranks are lost before step 2 makes the first update (job.steps_per_update)" in said


def test_a_restart_of_all_ranks_takes_the_checkpoint_within_an_accumulation(plan: Planner) -> None:
    job = {**TWO, "protection": ("RSC",), "agent": True, "checkpoint_interval": 3}
    (recovery,) = plan(at("kill", 8, "forward"), job=job).response.recoveries
    assert (recovery.step, recovery.trained_again, recovery.one_more) == (6, 1, ())
    (recovery,) = plan(at("kill", 5, "forward"), job=job).response.recoveries
    assert (recovery.step, recovery.trained_again, recovery.one_more, recovery.more) == (3, 1, (0, 1, 3), 1)
    (recovery,) = plan(
        at("kill", 5, "forward"), job={**job, "steps_per_update": 4, "checkpoint_interval": 4}
    ).response.recoveries
    assert (recovery.step, recovery.trained_again, recovery.one_more, recovery.more) == (4, 0, (0, 1, 3), 3)


def test_a_save_that_survivors_may_reach_within_an_accumulation_is_refused(plan: Planner) -> None:
    job = {**TWO, "protection": ("RSC",), "agent": True, "checkpoint_interval": 5}
    said = plan.refused(at("kill", 5, "forward"), job=job)
    assert "the others, within an accumulation of gradients (job.steps_per_update), may still have to save" in said


def test_an_optimizer_without_an_update_is_refused_with_its_line(plan: Planner) -> None:
    plan.lines = {"job.steps_per_update": 9}
    said = plan.refused(job={"steps_per_update": 11})
    assert "example.yaml:9" in said
    assert "the optimizer would make no update: job.steps is 10, and job.steps_per_update 11" in said


def test_a_fault_at_an_update_that_is_not_made_is_refused_with_its_line(plan: Planner) -> None:
    plan.lines = {"faults[0].trigger": 14, "faults": 11}
    said = plan.refused(at("kill", 7, "optimizer.update"), job=TWO)
    assert "is never reached: step 7 makes no update, there is one every 2 steps" in said
    assert "use step 8" in said
    assert plan(at("kill", 8, "optimizer.update"), job=TWO).response.mechanism == "TTP"


def test_the_plan_shows_the_updates(plan: Planner) -> None:
    found = plan(job=TWO)
    assert "an update of the optimizer every 2 steps" in render(found)
    assert "The optimizer makes an update once in 2 steps; the SDK counts no others." in found.explanation.reasons
    assert io.loads(io.dumps(found)).training.steps_per_update == 2
    assert "update of the optimizer" not in render(plan())
    assert plan().training.steps_per_update == 1
