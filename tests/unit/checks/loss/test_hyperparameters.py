"""The optimizer's numbers are compared with the fault-free run's, and a tensor without a digest is no pass."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, not_passed, said, verdicts

LR = "optimizer.0.lr"


def with_rates(run: GoodRun) -> GoodRun:
    """Every digest, also of the fault-free run, has the learning rate of its step."""
    assert run.baseline is not None
    for records in (*run.files.values(), *run.baseline.values()):
        for event in records:
            if event["event"] == "digest":
                event["hyperparameters"] = {LR: 1 / event["step"]}
    return run


def test_the_same_numbers_pass_and_none_say_nothing(run: GoodRun, judged: Judge) -> None:
    assert not said(judged(run), "loss", "pass", "the optimizer's numbers")
    judgement = judged(with_rates(run))
    assert not_passed(judgement) == []
    assert said(judgement, "loss", "pass", "the optimizer's numbers")


def test_another_learning_rate_fails_with_both_values(run: GoodRun, judged: Judge) -> None:
    (event,) = with_rates(run).events("digest", attempt="resume", rank=1, step=8)
    event["hyperparameters"] = {LR: 1.0}
    seen = f"first at rank 1, step 8: {LR} is 1.0, and 0.125 in the fault-free run"
    assert said(judged(run), "loss", "fail", seen)


def test_numbers_that_are_not_recorded_are_unknown(run: GoodRun, judged: Judge) -> None:
    (event,) = with_rates(run).events("digest", attempt="resume", rank=1, step=8)
    del event["hyperparameters"]
    assert said(judged(run), "loss", "unknown", "rank 1 has recorded none at step 8")


def test_a_parameter_without_a_digest_is_unknown_and_named(run: GoodRun, judged: Judge) -> None:
    for event in run.events("digest", attempt="resume", rank=1):
        event["unreadable"] = {"scales": "Packed: RuntimeError: no"}
    judgement = judged(run)
    assert said(judgement, "loss", "unknown", "rank 1 has no digest of scales, since Packed: RuntimeError: no")
    assert "fail" not in verdicts(judgement, "loss")
