"""Values that a fault changes in a job of PyTorch: the place, the promise, and the reason of each refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.jobs.mindspeed.job import KIND as MINDSPEED
from chaos.jobs.torch.job import KIND as TORCH
from chaos.jobs.torchft.job import KIND as TORCHFT
from chaos.plan.job_effect import ABNORMAL, DEATH, SILENT
from chaos.plan.render import render
from chaos.rehearsal.torch.job import KIND as TORCH_REHEARSAL
from tests.unit.plan.conftest import Planner

EFFECTS = {
    "flip-bit": SILENT,
    "kill": DEATH,
    "nonfinite-loss": SILENT,
    "spike": ABNORMAL,
    "wrong-batch": SILENT,
}
NONE = {"mechanism": "none"}
JOB = {"kind": "torch", "steps": 12, "protection": ("ELASTIC",), "checkpoint_interval": 4, "script": "train.py"}
FULL = {"ranks": 4, "parallel": {"data_parallel": 4, "shard": "full"}}
BACKWARD = "allreduce.enter"


def fault(kind: str, phase: str, step: int = 7, **parameters: Any) -> dict[str, Any]:
    return {"kind": kind, "target": {"rank": 1}, "trigger": {"step": step, "phase": phase}, "parameters": parameters}


@pytest.fixture
def plan() -> Planner:
    return Planner(traits=TORCH.traits, effects=EFFECTS)


@pytest.mark.parametrize(
    ("made", "until", "losses"),
    [
        (fault("spike", BACKWARD, factor=100), 6, 7),
        (fault("flip-bit", BACKWARD, where="gradient"), 6, 7),
        (fault("flip-bit", "step.begin", where="weight"), 6, 6),
        (fault("nonfinite-loss", "forward", value="nan"), 6, 6),
    ],
)
def test_nothing_starts_again_and_the_run_is_compared_until_the_change(
    plan: Planner, made: dict[str, Any], until: int, losses: int
) -> None:
    planned = plan(made, job=JOB, expect=NONE)
    assert (planned.response.mechanism, planned.response.recoveries) == (None, ())
    assert not planned.resume.resumes
    comparable = planned.equivalence.comparable
    assert comparable is not None
    assert (comparable.until, comparable.losses_until) == (until, losses)
    assert f"up to step {losses}; after that not compared" in render(planned)


def test_nothing_watches_the_norm_whatever_the_launcher_restarts(plan: Planner) -> None:
    reasons = " ".join(plan(fault("spike", BACKWARD, factor=100), job=JOB).explanation.reasons)
    assert "nothing watches the global norm" in reasons


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (fault("spike", "forward", factor=2), "write step, and phase: allreduce.enter"),
        (fault("spike", BACKWARD, norm=7.5), "a rank does not know those of the others, and cannot reach a norm"),
        (fault("spike", BACKWARD, 1, factor=2), "no step before it can show that the job is the baseline's"),
        (fault("spike", BACKWARD, factor=2, repeat=1), "is trained only once, since nothing undoes it"),
        (fault("flip-bit", "forward", where="gradient"), "write phase: allreduce.enter"),
        (fault("flip-bit", "forward", where="activation"), "use flip-bit with where: gradient or weight"),
        (fault("wrong-batch", "forward"), "what can be changed there: gradient, loss, weight"),
    ],
)
def test_what_cannot_be_made_there_is_refused(plan: Planner, made: dict[str, Any], message: str) -> None:
    assert message in " ".join(plan.refused(made, job=JOB, expect=NONE).split())


def test_a_spike_is_shown_by_the_fault_free_run_alone(plan: Planner) -> None:
    spike = fault("spike", BACKWARD, factor=2)
    assert "baseline is none" in plan.refused(spike, job=JOB, baseline="none")
    refused = " ".join(plan.refused(fault("spike", BACKWARD, 5, factor=2), spike, job=JOB).split())
    assert "shows only as a state that differs from the fault-free run's" in refused
    assert "stops the training in step 7 too" in " ".join(
        plan.refused(spike, fault("kill", "optimizer.update"), job=JOB).split()
    )


def test_fully_sharded_weights_have_no_gradient_to_flip_but_all_else(plan: Planner) -> None:
    gradient = fault("flip-bit", BACKWARD, where="gradient")
    refused = plan.refused(gradient, job=JOB, cluster=FULL, expect=NONE)
    assert "reduced inside fully_shard" in refused
    assert "write where: weight, or use the fault kind spike" in refused
    for made in (fault("flip-bit", "step.begin", where="weight"), fault("spike", BACKWARD, factor=2)):
        assert plan(made, job=JOB, cluster=FULL, expect=NONE).equivalence.comparable is not None


def test_a_rank_can_be_lost_where_its_gradients_would_be_reduced(plan: Planner) -> None:
    (recovery,) = plan(fault("kill", BACKWARD), job=JOB).response.recoveries
    assert (recovery.step, recovery.trained_again, recovery.one_more) == (4, 2, ())
    other = replace(plan, traits=replace(MINDSPEED.traits, mechanisms=None))
    assert "cannot observe phase allreduce.enter" in other.refused(fault("kill", BACKWARD), job=JOB)


@pytest.mark.parametrize("kind", [MINDSPEED, TORCHFT, TORCH_REHEARSAL])
def test_other_kinds_on_pytorch_change_no_value(plan: Planner, kind: Any) -> None:
    traits = replace(kind.traits, observable=TORCH.traits.observable, mechanisms=None, rules=None, lacks={})
    other = replace(plan, traits=traits)
    spike, flip = fault("spike", BACKWARD, factor=2), fault("flip-bit", "step.begin", where="weight")
    job = {**JOB, "protection": ()}
    assert "nothing can scale the gradients" in other.refused(spike, job=job)
    assert "nothing can change a weight" in other.refused(flip, job=job, expect=NONE)
