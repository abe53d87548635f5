"""A job that is not bit-exact is judged by samples: noise passes, a drift fails, and nothing passes without samples."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaos.checks.judge import judge
from chaos.checks.loss.check import check
from chaos.evidence.finding import worst
from chaos.plan.parts.equivalence import StateTolerance
from tests.kit.runs.good_run import LAST, GoodRun, State, hex_of
from tests.kit.runs.tolerant_run import LIMITS, Change, tolerant_run
from tests.unit.checks.judging import Judge, not_passed, said


@pytest.fixture
def loss_judged(tmp_path: Path) -> Judge:
    """Write a run and judge it by the check alone."""
    return lambda run: judge(run.write(tmp_path / "run"), {"loss": check})


def test_noise_within_the_limits_passes_every_check(judged: Judge) -> None:
    judgement = judged(tolerant_run())
    assert not_passed(judgement) == [] and worst([finding.verdict for finding in judgement.findings]) == "pass"
    assert said(judgement, "loss", "pass", "or differ by at most")
    assert said(judgement, "loss", "pass", "the mean loss from step 6 on")


def test_what_a_tolerance_leaves_open_is_listed_as_not_checked(loss_judged: Judge) -> None:
    run = tolerant_run()
    run.replan(state_tolerances=(replace(LIMITS[0], sample=None), LIMITS[1]))
    left = {entry.what: entry.reason for entry in loss_judged(run).not_checked if entry.check == "loss"}
    assert "expect.loss has a tolerance" in left["weights and optimizer state bit for bit against the fault-free run"]
    assert "values of moments.* against the fault-free run" in left


def test_another_digest_without_samples_is_unknown(loss_judged: Judge) -> None:
    run = tolerant_run()
    for event in run.events("digest", attempt="resume", rank=1):
        del event["samples"]
    judgement = loss_judged(run)
    assert said(judgement, "loss", "unknown", "first at rank 1, step 6: no samples are kept of layer1.bias")
    assert not said(judgement, "loss", "fail", "")


@pytest.mark.parametrize("text", ["", "3", "3 1.0 x 1", "-3 1 1 1", "2 1 1 1 1 1", 7, None, "3 1 1 1"])
def test_a_damaged_sample_is_no_sample(loss_judged: Judge, text: object) -> None:
    run = tolerant_run()
    run.only("digest", attempt="resume", rank=1, step=LAST)["samples"]["layer1.bias"] = text
    assert said(loss_judged(run), "loss", "unknown", "no samples are kept of layer1.bias")


def moments_lost(rank: int, step: int, state: State) -> None:
    """The moments begin from zero after the resume, and grow again."""
    for name in state:
        if name.startswith("moments."):
            state[name] = state[name] * state[name].dtype.type(1 - 0.9 ** (step - 5))


def a_step_too_few(rank: int, step: int, state: State) -> None:
    """The weights are those of the step before."""
    state["layer1.bias"] = state["layer1.bias"] * state["layer1.bias"].dtype.type((step - 1) / step)


def one_value_changed(rank: int, step: int, state: State) -> None:
    state["layer1.weight"].reshape(-1)[2] += 1


@pytest.mark.parametrize(
    ("change", "name"),
    [(moments_lost, "moments.layer1"), (a_step_too_few, "layer1.bias"), (one_value_changed, "layer1.weight")],
)
def test_a_drift_beyond_the_measured_noise_fails(loss_judged: Judge, change: Change, name: str) -> None:
    found = said(loss_judged(tolerant_run(change)), "loss", "fail", name)
    assert found
    assert all("the limit is 0.0" in each.seen and "within the tolerance" in each.expected for each in found)


def test_a_drift_is_unknown_where_only_the_losses_have_a_tolerance(loss_judged: Judge) -> None:
    run = tolerant_run(moments_lost)
    run.replan(state_tolerances=())
    judgement = loss_judged(run)
    assert said(judgement, "loss", "unknown", "chaos calibrate measures limits")
    assert not said(judgement, "loss", "fail", "")


def test_the_tolerance_of_the_losses_serves_for_states_that_are_within_it(loss_judged: Judge) -> None:
    run = tolerant_run()
    run.replan(state_tolerances=())
    assert not_passed(loss_judged(run)) == []


def test_what_no_pattern_fits_must_be_equal_bit_for_bit(loss_judged: Judge) -> None:
    run = tolerant_run()
    run.replan(state_tolerances=LIMITS[:1])
    assert said(loss_judged(run), "loss", "unknown", "before any fault, differs")
    run = tolerant_run(lambda rank, step, state: state.update(learning_rate=state["learning_rate"] * np.float32(2)))
    assert said(loss_judged(run), "loss", "fail", "learning_rate must be equal bit for bit")


def test_the_step_counter_has_no_tolerance(loss_judged: Judge) -> None:
    run = tolerant_run(lambda rank, step, state: state.update(global_step=state["global_step"] - 1))
    run.replan(state_tolerances=(StateTolerance("*", 1.0, 1.0),))
    assert said(loss_judged(run), "loss", "fail", "global_step must be equal bit for bit")


def test_a_value_that_is_not_finite_fails_though_no_limit_is_stated(loss_judged: Judge) -> None:
    run = tolerant_run(lambda rank, step, state: state["layer1.bias"].fill(math.nan) if step == LAST else None)
    run.replan(state_tolerances=(StateTolerance("*", None, None),))
    assert said(loss_judged(run), "loss", "fail", "not finite: layer1.bias")


def test_a_parameter_that_is_lost_fails(loss_judged: Judge) -> None:
    run = tolerant_run()
    for event in run.events("digest", attempt="resume", step=LAST):
        del event["parameters"]["moments.layer1.bias"]
    assert said(loss_judged(run), "loss", "fail", "moments.layer1.bias must be equal bit for bit")


def with_losses(run: GoodRun, factor: float) -> GoodRun:
    for event in run.events("digest", attempt="resume", rank=2):
        event["loss"] = (float.fromhex(event["loss"]) * factor).hex()
    return run


def test_a_lasting_drift_of_the_losses_fails_although_each_loss_is_within_the_tolerance(loss_judged: Judge) -> None:
    judgement = loss_judged(with_losses(tolerant_run(), 1.007))
    (finding,) = said(judgement, "loss", "fail", "the mean loss of rank 2 is off by 0.00")
    assert not said(judgement, "loss", "fail", "every loss equals") and finding.data.ranks == (2,)


def test_a_mean_without_all_its_losses_is_unknown(loss_judged: Judge) -> None:
    run = tolerant_run()
    run.drop("digest", attempt="resume", rank=2, step=9)
    assert said(loss_judged(run), "loss", "unknown", "losses of rank 2 are missing")


def test_noise_beyond_the_limits_before_the_fault_is_unknown_and_no_failure(loss_judged: Judge) -> None:
    run = tolerant_run(moments_lost)
    run.replan(state_tolerances=(StateTolerance("*", 1e-6, 1e-6),))
    judgement = loss_judged(run)
    assert said(judgement, "loss", "unknown", "before any fault, differs from the baseline")
    assert not said(judgement, "loss", "fail", "")


def test_a_checkpoint_that_differs_from_what_its_rank_held_fails_at_any_tolerance(judged: Judge) -> None:
    run = tolerant_run()
    run.saved[0].state["layer1.weight"] = run.saved[0].state["layer1.weight"] * 1.0001
    judgement = judged(run)
    assert said(judgement, "checkpoint", "fail", "every value equals what the rank held")
    assert said(judgement, "checkpoint", "unknown", "no samples are kept of what the file holds")


def test_moments_and_batches_of_a_resume_stay_exact_at_any_tolerance(judged: Judge) -> None:
    run = tolerant_run()
    run.replan(state_tolerances=(StateTolerance("*", None, None),))
    initial = run.only("initial", attempt="resume", rank=1)["parameters"]
    initial["moments.layer1.weight"] = hex_of("zero")
    run.only("digest", attempt="resume", rank=0, step=8)["batch"] = hex_of("another batch")
    judgement = judged(run)
    assert said(judgement, "resume", "fail", "moments.layer1.weight")
    assert said(judgement, "resume", "fail", "none skipped, none trained twice")
