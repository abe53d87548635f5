"""How far a run can be compared: up to a change of its training, and again once a recovery has gone back behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.plan.io import dumps, loads
from chaos.plan.job_effect import SILENT
from chaos.plan.model import Plan
from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits
from tests.unit.plan.conftest import EFFECTS, Planner

RSC = {"protection": ("RSC",), "agent": True, "checkpoint_interval": 4, "steps": 14}
NONE = {"mechanism": "none"}
PHASES = {"flip-bit": "allreduce.enter", "wrong-batch": "forward", "nonfinite-loss": "forward", "kill": "forward"}


@pytest.fixture
def real(plan: Planner) -> Planner:
    alters = frozenset({"gradient", "weight", "activation", "batch", "loss"})
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", storage="checkpoints", alters=alters)
    silent = dict.fromkeys(("flip-bit", "wrong-batch", "nonfinite-loss"), SILENT)
    plan.effects = {**EFFECTS, **silent}
    return plan


def fault(kind: str, step: int, phase: str = "", rank: int = 1, **parameters: Any) -> dict[str, Any]:
    trigger = {"step": step, "phase": phase or PHASES[kind]}
    return {
        "id": f"{kind}-{step}",
        "kind": kind,
        "target": {"rank": rank},
        "trigger": trigger,
        "parameters": parameters,
    }


def limits(plan: Plan) -> tuple[int, int] | None:
    return (
        None
        if plan.equivalence.comparable is None
        else (plan.equivalence.comparable.until, plan.equivalence.comparable.losses_until)
    )


@pytest.mark.parametrize("kind", ["flip-bit", "wrong-batch", "nonfinite-loss"])
def test_a_step_that_is_trained_again_is_compared_again(real: Planner, kind: str) -> None:
    back = real(fault(kind, 6), fault("kill", 7), job=RSC)
    assert back.equivalence.comparable is None
    assert [planned_fault.taken_back for planned_fault in back.faults] == [True, False]
    assert back.response.recoveries[0].as_fault_free
    assert "everything must then be as without the fault" in " ".join(back.explanation.reasons)
    assert loads(dumps(back)) == back


def test_a_checkpoint_of_after_the_corruption_keeps_it(real: Planner) -> None:
    kept = real(fault("flip-bit", 3), fault("kill", 7), job=RSC)
    assert limits(kept) == (2, 3)
    assert [planned_fault.taken_back for planned_fault in kept.faults] == [False, False]
    assert not kept.response.recoveries[0].as_fault_free


def test_a_corruption_behind_the_restart_is_not_taken_back(real: Planner) -> None:
    later = real(fault("flip-bit", 10), fault("kill", 7), job=RSC)
    assert limits(later) == (9, 10)
    assert later.response.recoveries[0].as_fault_free


def test_the_second_restart_may_take_it_back_and_the_first_not(real: Planner) -> None:
    found = real(fault("kill", 5), fault("flip-bit", 9), fault("kill", 11, rank=2), job=RSC)
    assert limits(found) is None
    assert [recovery.step for recovery in found.response.recoveries] == [4, 8]


def test_a_resume_from_before_the_corruption_takes_it_back(real: Planner) -> None:
    real.traits = replace(real.traits, group_info=True)
    pairs = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
    given: dict[str, Any] = {"cluster": pairs, "job": {**RSC, "protection": (), "agent": False}}
    expected = {"resume": {"step": 5}}
    assert limits(real(fault("flip-bit", 6), fault("kill", 7), expect=expected, **given)) is None
    assert limits(real(fault("flip-bit", 3), fault("kill", 7), expect=expected, **given)) == (2, 3)
    left = {"resume": "none"}
    assert limits(real(fault("flip-bit", 6), fault("kill", 7), expect=left, **given)) == (5, 6)
    assert limits(real(fault("flip-bit", 6), fault("kill", 8))) == (5, 6)  # its end-of-life checkpoint holds it


def test_a_spike_that_is_trained_again_is_compared_again(plan: Planner) -> None:
    spike = fault("flip-bit", 6, norm=7.5) | {"kind": "spike"}
    assert limits(plan(spike, fault("kill", 7), job=RSC)) is None
    assert limits(plan(spike, fault("kill", 9), job=RSC)) == (5, 6)


def test_whether_it_comes_before_the_restart_must_not_be_left_to_chance(real: Planner) -> None:
    text = real.refused(fault("flip-bit", 7), fault("kill", 7, "step.begin", rank=2), job=RSC)
    assert "may be made before the recovery from fault 'kill-7'" in text
    assert limits(real(fault("flip-bit", 6), fault("kill", 7, "step.begin", rank=2), job=RSC)) is None
    # Ranks of another replica group may still be a step behind.
    pairs = {"ranks": 4, "parallel": {"data_parallel": 2, "model_parallel": 2}}
    behind = real.refused(fault("flip-bit", 6), fault("kill", 7, "step.begin", rank=2), job=RSC, cluster=pairs)
    assert "may be made before the recovery from fault 'kill-7'" in behind
    assert limits(real(fault("flip-bit", 6), fault("kill", 7, "step.begin", rank=3), job=RSC, cluster=pairs)) is None


@pytest.mark.parametrize("phase", ["step.begin", "allreduce.enter", "optimizer.update"])
def test_a_corrupted_step_must_be_ended_or_nothing_shows_what_came_of_it(real: Planner, phase: str) -> None:
    for job in ({}, RSC):
        text = real.refused(fault("flip-bit", 7), fault("kill", 7, phase, rank=2), job=job)
        assert "stops the training in step 7 too, so the effect of fault 'flip-bit-7' is never seen" in text


def test_where_training_goes_on_must_not_be_left_open(real: Planner) -> None:
    kill = {"kind": "kill", "target": {"rank": 2}, "trigger": {"elapsed": "3s"}}
    assert "is left open, so it is not known whether step 6" in real.refused(fault("flip-bit", 6), kill)


def test_a_flipped_bit_behind_another_change_cannot_be_told(real: Planner) -> None:
    first = fault("flip-bit", 4)
    refused = real.refused(first, fault("flip-bit", 8, rank=2), expect=NONE)
    assert "the state already differs because of fault 'flip-bit-4'" in refused
    same = real.refused(first, {**fault("flip-bit", 4, rank=2), "id": "other"}, expect=NONE)
    assert "the state already differs because of fault 'flip-bit-4'" in same
    assert limits(real(first, fault("wrong-batch", 8), expect=NONE)) == (3, 4)
    assert limits(real(first, fault("nonfinite-loss", 8), expect=NONE)) == (3, 4)
    assert limits(real(first, fault("flip-bit", 8, "step.begin", where="weight"), expect=NONE)) == (3, 4)


def test_a_flipped_bit_behind_one_that_was_taken_back_can(real: Planner) -> None:
    found = real(fault("flip-bit", 5), fault("kill", 6), fault("flip-bit", 10, rank=2), job=RSC)
    assert [planned_fault.taken_back for planned_fault in found.faults] == [True, False, False]
    assert limits(found) == (9, 10)


def test_what_must_be_finite_ends_with_the_step_that_is_changed(real: Planner) -> None:
    found = real(fault("flip-bit", 6), expect=NONE).equivalence.comparable
    assert found is not None
    assert (found.finite_until, found.finite_gradients_until) == (6, 5)
    other = real(fault("nonfinite-loss", 6), expect=NONE).equivalence.comparable
    assert other is not None
    assert (other.finite_until, other.finite_gradients_until) == (5, 5)
    assert replace(other, finite_until=None).losses_until == 5


def test_only_ranks_of_the_last_stage_have_a_loss_to_be_changed(real: Planner) -> None:
    stages = {"ranks": 4, "parallel": {"data_parallel": 2, "pipeline_stage": 2}}
    assert real(fault("nonfinite-loss", 6, rank=2), cluster=stages, expect=NONE).layout.loss_ranks == (2, 3)
    refused = real.refused(fault("nonfinite-loss", 6, rank=1), cluster=stages, expect=NONE)
    assert "in a pipeline rank 1 cannot have a loss to be changed: only that of ranks 2-3 is valid" in refused
    assert real(fault("flip-bit", 6, rank=1), cluster=stages, expect=NONE).layout.loss_ranks == (2, 3)
