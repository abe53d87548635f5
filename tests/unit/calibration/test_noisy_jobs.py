"""Limits of a job with dropout: sound runs pass at the stated rate, and the defects of a resume still fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.calibration.calibration import Calibration, calibrate, sentences
from chaos.calibration.noise import LOSS, MEAN, Quantity, Recorded
from chaos.calibration.sight import sight_of
from chaos.checks.loss.check import check
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import Verdict, worst
from chaos.plan.parts.equivalence import StateTolerance
from tests.kit.jobs.noisy_job import history_of, the_plan, trained
from tests.kit.spread import spread

KERNELS = 1e-4


def calibrated(runs: Sequence[Recorded], false_alarm: float = 0.01) -> Calibration:
    return calibrate(the_plan(), runs, false_alarm)


def judged(calibration: Calibration, run: Recorded, baseline: Recorded, directory: Path) -> Verdict:
    """The verdict of the check ``loss`` with the limits of the calibration."""
    limits = calibration.limits()
    states = tuple(
        StateTolerance(pattern, each.get("norm"), each.get("sample")) for pattern, each in limits["state"].items()
    )
    plan = the_plan(
        loss_tolerance=limits.get("tolerance", 0.0),
        mean_tolerance=limits.get("mean"),
        state_tolerances=states,
        gradients=False,
    )
    findings = check(plan, history_of(run), Artifacts(directory, history_of(baseline), steps_per_update=1))
    return worst([finding.verdict for finding in findings])


@pytest.fixture(scope="module")
def small() -> Calibration:
    """The noise of kernels, with masks by a seed."""
    return calibrated([trained(run, kernels=KERNELS) for run in range(5)])


@pytest.fixture(scope="module")
def large() -> Calibration:
    """The noise of masks without a seed."""
    return calibrated([trained(run, own_masks=True) for run in range(8)])


def test_a_sound_run_passes(small: Calibration, tmp_path: Path) -> None:
    assert judged(small, trained(100, kernels=KERNELS), trained(101, kernels=KERNELS), tmp_path) == "pass"


@pytest.mark.parametrize("defect", ["masks", "moments", "batch"])
def test_a_wrong_generator_a_lost_moment_and_a_skipped_batch_fail(
    small: Calibration, tmp_path: Path, defect: str
) -> None:
    run = trained(100, kernels=KERNELS, defect=defect)
    assert judged(small, run, trained(101, kernels=KERNELS), tmp_path) == "fail"


def test_the_limits_of_small_noise_see_a_step_too_many_and_moments_of_zero(small: Calibration) -> None:
    tolerance, sight = small.tolerance, small.sight
    assert tolerance is not None and tolerance.loss is not None and tolerance.loss < 0.01
    assert set(tolerance.patterns()) == {"moments.*weight", "moments.*bias", "*weight", "*bias"}
    assert all(limit is not None and limit < 0.1 for limit in tolerance.limits.values())
    assert sight is not None and sight.seen_shifted == sight.shifted > 0
    assert sight.moments == ("moments.*bias", "moments.*weight")


def test_large_noise_passes_and_what_it_hides_is_said(large: Calibration, tmp_path: Path) -> None:
    assert large.tolerance is not None and large.sight is not None
    assert judged(large, trained(100, own_masks=True), trained(101, own_masks=True), tmp_path) == "pass"
    assert large.tolerance.limits[Quantity("sample", "moments.*bias")] is None
    said = "\n".join(sentences(large))
    assert "would make it so: random layers draw other numbers" in said
    assert "sample of moments.*bias: not judged" in said
    assert "exceed no limit; only the check resume sees them" in said and large.sight.moments == ()
    assert "below that a drift passes" in said
    assert "sample" not in large.limits()["state"]["moments.*bias"]


def test_moments_that_begin_at_zero_are_seen_only_where_they_exceed_a_limit_after_a_step(small: Calibration) -> None:
    """A limit just below 1 sees moments of zero, and not those of a step later."""
    runs = [trained(run, kernels=KERNELS) for run in range(3)]
    assert small.tolerance is not None
    wide = replace(small.tolerance, limits=dict.fromkeys(small.tolerance.limits, 0.99))
    assert sight_of(the_plan(), runs, wide).moments == ()
    assert sight_of(the_plan(), runs, small.tolerance).moments == ("moments.*bias", "moments.*weight")


def test_the_mean_has_a_tighter_limit_than_single_losses(large: Calibration) -> None:
    assert large.tolerance is not None
    loss, mean = large.tolerance.limits[LOSS], large.tolerance.limits[MEAN]
    assert loss is not None and mean is not None and mean < loss


@pytest.mark.parametrize("own_masks", [False, True])
@pytest.mark.parametrize("number", spread(range(12), 12))
def test_sound_runs_fail_no_more_often_than_stated(number: int, own_masks: bool, tmp_path: Path) -> None:
    first = 1000 * (number + 1)
    kernels = 0.0 if own_masks else KERNELS

    def sound(run: int) -> Recorded:
        return trained(first + run, kernels=kernels, own_masks=own_masks)

    calibration = calibrated([sound(run) for run in range(5)])
    runs = [sound(100 + run) for run in range(8)]
    verdicts = [judged(calibration, run, baseline, tmp_path) for run, baseline in zip(runs[1:], runs[:-1], strict=True)]
    assert verdicts == ["pass"] * 7


def test_too_few_runs_whose_limits_would_see_nothing_are_refused() -> None:
    """Of three runs the bound is far above the noise: a state a step off would pass, and each bug of its size."""
    few = calibrated([trained(run, kernels=KERNELS) for run in range(3)], 1e-6)
    assert few.tolerance is None and few.refusal is not None
    assert few.refusal.startswith("3 runs are too few to bound the noise") and "--runs" in few.refusal
    assert calibrated([trained(run, kernels=KERNELS) for run in range(8)], 1e-6).tolerance is not None


def test_noise_as_large_as_a_step_is_no_lack_of_runs() -> None:
    assert calibrated([trained(run, own_masks=True) for run in range(5)]).refusal is None


def test_equal_runs_are_deterministic_and_need_no_tolerance() -> None:
    calibration = calibrated([trained(run) for run in range(3)])
    assert calibration.noise.deterministic and calibration.tolerance is None and calibration.refusal is None
    said = list(sentences(calibration))
    assert said[0].startswith("deterministic: 3 runs are equal bit for bit")
    assert "fewer than 78% of runs differ" in said[1]
