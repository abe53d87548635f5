"""Damage to a checkpoint before a restart by torchrun: planned where it is certain what the restart meets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.job_effect import DAMAGED, DEATH, RENAMED
from chaos.plan.parts.response import Recovery
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits
from tests.unit.plan.conftest import Planner

JOB: dict[str, Any] = {"steps": 12, "protection": ("ELASTIC",), "checkpoint_interval": 4, "script": "train.py"}
STATED = {"resume": {"step": 5}}
KINDS = ("flip-checkpoint", "truncate-checkpoint", "partial-checkpoint", "stale-checkpoint", "remove-checkpoint")


@pytest.fixture
def plan() -> Planner:
    """A planner of jobs with a script of the user's own, whose launcher can start ranks again."""
    traits = JobTraits(
        frozenset(PHASE_ORDER),
        None,
        resumes_periodic=True,
        devices=frozenset({"CPU"}),
        genuine=True,
        own_script=False,
        mindspore=False,
        vendor=None,
        own_launcher=True,
        launcher_restarts=True,
        file_format=None,
    )
    effects = {"kill": DEATH, "rename-checkpoint": RENAMED, **dict.fromkeys(KINDS, DAMAGED)}
    return Planner(traits=traits, effects=effects)


def damage(step: int = 9, phase: str = "forward", rank: int = 0, kind: str = KINDS[0], **more: Any) -> dict[str, Any]:
    trigger = {"step": step, "phase": phase}
    return {"id": "damage", "kind": kind, "target": {"rank": rank}, "trigger": trigger, **more}


def kill(step: int = 10, phase: str = "forward", rank: int = 1, name: str = "kill") -> dict[str, Any]:
    return {"id": name, "kind": "kill", "target": {"rank": rank}, "trigger": {"step": step, "phase": phase}}


@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_from_the_checkpoint_that_the_scenario_states(plan: Planner, kind: str) -> None:
    found = plan(damage(kind=kind), kill(), job=JOB, expect=STATED)
    everyone = (0, 1, 2, 3)
    recovery = Recovery("ELASTIC", ("kill",), 4, True, everyone, (), True, trained_again=5, damaged={0: 8})
    assert found.response.recoveries == (recovery,)
    assert (found.resume.resumes, found.resume.resume_step, found.resume.restore) == (False, None, None)
    reason = "The last periodic checkpoint, of step 8, is damaged by fault 'damage' before the restart"
    assert any(reason in text and "5 steps lost" in text for text in found.explanation.reasons)
    assert loads(dumps(found)) == found


@pytest.mark.parametrize(
    ("hit", "loss"),
    [
        (damage(9, "optimizer.update"), kill(10, rank=0)),  # the same rank comes there later
        (damage(9, "optimizer.update"), kill(11)),
        (damage(10, "step.begin"), kill(10, "optimizer.update")),
        (damage(10, "step.begin"), kill(10, rank=0)),
    ],
)
def test_damage_that_certainly_comes_first_is_planned(plan: Planner, hit: dict[str, Any], loss: dict[str, Any]) -> None:
    assert plan(hit, loss, job=JOB, expect=STATED).response.recoveries[0].damaged == {0: 8}


@pytest.mark.parametrize("hit", [damage(9, "optimizer.update"), damage(10, "step.begin")])
def test_damage_that_another_rank_does_not_wait_for_is_refused(plan: Planner, hit: dict[str, Any]) -> None:
    text = plan.refused(hit, kill(), job=JOB, expect=STATED)
    assert "fault 'damage' may come after fault 'kill'" in text
    assert "let it come a step earlier, or hit a rank that is lost" in text


@pytest.mark.parametrize(("step", "last"), [(7, 4), (8, 4)])
def test_damage_before_the_last_save_is_refused(plan: Planner, step: int, last: int) -> None:
    text = plan.refused(damage(step), kill(), job=JOB, expect=STATED)
    assert f"damages the checkpoint of step {last}, and that of step 8 is saved before fault 'kill'" in text
    assert "let it come behind the save of step 8" in text


def test_damage_without_a_checkpoint_is_refused(plan: Planner) -> None:
    assert "finds no checkpoint" in plan.refused(damage(3), kill(4, rank=0), job=JOB, expect=STATED)
    text = plan.refused(damage(), kill(), job={**JOB, "checkpoint_interval": None}, expect=STATED)
    assert "finds no checkpoint" in text


@pytest.mark.parametrize("expect", [{}, {"resume": "none"}])
def test_a_scenario_that_states_no_step_is_refused(plan: Planner, expect: dict[str, Any]) -> None:
    text = plan.refused(damage(), kill(), job=JOB, expect=expect)
    assert "the plan does not know whether the script notices that" in text
    assert "write expect.resume: {step: N}" in text


@pytest.mark.parametrize("step", [1, 4, 9, 13])
def test_a_step_of_no_sound_checkpoint_is_refused(plan: Planner, step: int) -> None:
    text = plan.refused(damage(), kill(), job=JOB, expect={"resume": {"step": step}})
    assert f"expect.resume.step says {step}" in text and "that of step 8 is damaged by fault 'damage'" in text
    assert "write one of: 5" in text


def test_the_only_checkpoint_leaves_no_step_to_state(plan: Planner) -> None:
    text = plan.refused(damage(6), kill(7), job=JOB, expect={"resume": {"step": 5}})
    assert "let the fault come behind the second save" in text


def test_another_step_than_the_last_is_refused_without_damage(plan: Planner) -> None:
    assert "expect.resume names step 5" in plan.refused(kill(), job=JOB, expect=STATED)


def test_damage_after_the_kill_is_refused_with_a_hint(plan: Planner) -> None:
    text = plan.refused(damage(trigger={"after": "kill"}), kill(rank=0), job=JOB)
    assert "fault 'damage' does not certainly come before a restart within the launch" in text
    assert "ELASTIC leaves no time to damage a checkpoint afterwards" in text
    assert "a trigger with step and phase" in text


@pytest.mark.parametrize("step", [10, 11])
def test_damage_at_the_loss_or_behind_it_is_refused(plan: Planner, step: int) -> None:
    assert "does not certainly come before a restart" in plan.refused(damage(step), kill(10), job=JOB)


def test_a_second_damaged_restart_is_refused(plan: Planner) -> None:
    job = {**JOB, "steps": 16, "restart_limit": 3}
    again = damage(14, rank=2) | {"id": "again"}
    text = plan.refused(damage(), kill(), again, kill(15, name="second"), job=job, expect=STATED)
    assert "fault 'again' is the second that a restart meets" in text


def test_only_the_next_restart_meets_the_damage(plan: Planner) -> None:
    job = {**JOB, "steps": 16, "restart_limit": 3}
    first, second = plan(damage(), kill(), kill(15, name="second"), job=job, expect=STATED).response.recoveries
    assert (first.step, first.damaged) == (4, {0: 8})
    assert (second.step, second.damaged) == (12, {})
    first, second = plan(kill(6, name="first"), damage(), kill(), job=job, expect=STATED).response.recoveries
    assert (first.step, first.damaged) == (4, {})
    assert (second.step, second.damaged) == (4, {0: 8})


def test_a_job_that_ends_after_the_damaged_restart_is_refused(plan: Planner) -> None:
    job = {**JOB, "steps": 16, "restart_limit": 1}
    text = plan.refused(damage(), kill(), kill(15, name="second"), job=job, expect=STATED)
    assert "expect.resume cannot state both steps" in text


def test_a_restart_that_is_not_allowed_meets_nothing(plan: Planner) -> None:
    text = plan.refused(damage(), kill(), job={**JOB, "restart_limit": 0}, expect=STATED)
    assert "must come after their last save" in text


def test_a_renamed_checkpoint_is_refused(plan: Planner) -> None:
    text = plan.refused(damage(kind="rename-checkpoint"), kill(), job=JOB, expect=STATED)
    assert "not yet planned by this version" in text


def test_checkpoints_written_in_the_background_are_refused(plan: Planner) -> None:
    job = {**JOB, "storage": {"asynchronous_saving": True}}
    text = plan.refused(damage(11), kill(12), job=job, expect=STATED)
    assert "which one is finished when fault 'damage' comes is not known" in text


def test_a_script_that_is_not_the_users_own_is_refused(plan: Planner) -> None:
    plan.traits = replace(plan.traits, resumes_periodic=False)
    text = plan.refused(damage(), kill(), job=JOB, expect=STATED)
    assert "does not define how to go on from one" in text
