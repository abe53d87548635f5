"""What no noise changes has no tolerance, and a limit that tells nothing is said to tell nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chaos.agent.digests import EXACT, Sampler
from chaos.checks.judge import Judgement, judge
from chaos.checks.loss.check import check
from chaos.evidence.tolerances import samples
from chaos.plan.parts.equivalence import StateTolerance
from chaos.scenario.models.scenario import ExpectLoss, StateLimits
from tests.kit.runs.good_run import SAVED, GoodRun, State, digests_of, state_after
from tests.kit.runs.tolerant_run import LIMITS, tolerant_run
from tests.unit.checks.judging import Judge, not_passed, said


@pytest.fixture
def loss_judged(tmp_path: Path) -> Judge:
    """Write a run and judge it by the check alone."""
    return lambda run: judge(run.write(tmp_path / "run"), {"loss": check})


def left_of(judgement: Judgement) -> dict[str, str]:
    """What the check leaves out, and why."""
    return {entry.what: entry.reason for entry in judgement.not_checked if entry.check == "loss"}


def counting(run: GoodRun, name: str, kind: type[np.generic], late: int) -> GoodRun:
    """Every state has a counter of its own, which is ``late`` too low after the resume."""
    run.replan(state_tolerances=(StateTolerance("*", 0.5, 0.5),))
    assert run.baseline is not None
    for own, files in ((True, run.files), (False, run.baseline)):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] in ("initial", "digest"):
                step = event.get("step", SAVED if event["attempt"] == "resume" else 0)
                lag = late if own and event["attempt"] == "resume" and "step" in event else 0
                state: State = {name: np.array([step - lag], kind)}
                event["parameters"].update(digests_of(state))
                event["samples"].update(Sampler(1).samples(state.items()))
    return run


@pytest.mark.parametrize(("name", "kind"), [("cursor", np.int32), ("step", np.float32), ("seen", np.uint8)])
def test_a_counter_that_is_one_too_low_fails_at_any_tolerance(
    loss_judged: Judge, name: str, kind: type[np.generic]
) -> None:
    judgement = loss_judged(counting(tolerant_run(), name, kind, 1))
    assert said(judgement, "loss", "fail", f"{name} must be equal bit for bit")
    assert not_passed(loss_judged(counting(tolerant_run(), name, kind, 0))) == []


def test_integers_have_no_sample() -> None:
    arrays = {"one": np.array(3), "true": np.array([True]), "two": np.array([3, 4]), "float": np.array(3.0)}
    taken = Sampler(1).samples([*arrays.items(), ("number", 3), ("share", 0.5)])
    assert {name for name, sample in taken.items() if sample == EXACT} == {"one", "true", "two", "number"}
    assert samples.EXACT == EXACT and samples.read_sample(EXACT) is None


def test_integers_that_the_scenario_leaves_out_are_not_checked(loss_judged: Judge) -> None:
    run = counting(tolerant_run(), "cursor", np.int32, 1)
    run.replan(state_tolerances=(StateTolerance("cursor", None, None), StateTolerance("*", 0.5, 0.5)))
    judgement = loss_judged(run)
    assert not_passed(judgement) == []
    assert "values of cursor against the fault-free run" in left_of(judgement)


def test_another_shape_fails_at_any_tolerance(loss_judged: Judge) -> None:
    run = tolerant_run(lambda rank, step, state: state.update({"layer1.bias": np.zeros(4, np.float32)}))
    assert said(loss_judged(run), "loss", "fail", "layer1.bias must be equal bit for bit")


@pytest.mark.parametrize("limits", [{"norm": 1.0}, {"sample": 1.5}])
def test_a_limit_as_large_as_the_value_is_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="less than 1"):
        StateLimits.model_validate(limits)
    with pytest.raises(ValueError, match="less than 1"):
        ExpectLoss.model_validate({"mean": 1.0})


def test_a_limit_as_large_as_the_value_in_an_older_plan_is_listed_as_not_checked(loss_judged: Judge) -> None:
    run = tolerant_run()
    run.replan(state_tolerances=(StateTolerance("*", 2.0, 0.5),))
    reason = left_of(loss_judged(run))["norm and mean of * against the fault-free run"]
    assert reason == "the limit 2 is as large as the values themselves"
    run.replan(state_tolerances=(), loss_tolerance=1.0)
    left = left_of(loss_judged(run))
    assert "weights and optimizer state against the fault-free run, but that they are finite" in left


def stopped_after_the_resume(rank: int, step: int, state: State) -> None:
    """The weights are trained no more."""
    weights = {name: array for name, array in state_after(rank, SAVED).items() if name.startswith("layer1")}
    state.update(weights)


def test_limits_that_the_training_itself_does_not_exceed_are_listed_as_not_checked(loss_judged: Judge) -> None:
    run = tolerant_run(stopped_after_the_resume)
    run.replan(state_tolerances=(LIMITS[0], StateTolerance("layer1.*", 0.7, 0.7)))
    judgement = loss_judged(run)
    assert not said(judgement, "loss", "fail", "weights and optimizer state")
    assert "less than the limits" in left_of(judgement)[f"whether layer1.* went on after step {SAVED}"]


def test_limits_that_the_training_exceeds_are_not_listed(loss_judged: Judge) -> None:
    assert not [what for what in left_of(loss_judged(tolerant_run())) if what.startswith("whether")]


def test_without_a_record_of_moments_the_tolerance_leaves_them_open(loss_judged: Judge) -> None:
    run = tolerant_run()
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for event in (entry for records in files.values() for entry in records):
            for part in ("parameters", "samples") if event["event"] in ("initial", "digest") else ():
                event[part] = {name: text for name, text in event.get(part, {}).items() if not name.startswith("mom")}
    assert "no rank records any" in left_of(loss_judged(run))["moments of the optimizer against the fault-free run"]
    assert "moments of the optimizer against the fault-free run" not in left_of(loss_judged(tolerant_run()))


def test_limits_behind_a_pattern_that_fits_everything_are_said_to_be_unused(loss_judged: Judge) -> None:
    run = tolerant_run()
    run.replan(state_tolerances=(StateTolerance("*", 0.1, 0.1), *LIMITS))
    left = left_of(loss_judged(run))
    assert left["limits of moments.* in expect.loss.state"] == "they fit no parameter that no earlier pattern fits"
    assert "limits of * in expect.loss.state" not in left
    assert not [what for what in left_of(loss_judged(tolerant_run())) if what.startswith("limits of")]
