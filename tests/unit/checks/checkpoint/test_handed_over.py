"""What a job itself appends to an end-of-life checkpoint is not taken for what the job does not have."""

from __future__ import annotations

import numpy as np

from tests.kit.runs.good_run import GoodRun, good_run
from tests.unit.checks.judging import Judge, not_passed, said

STRANGE = "rank 1's file holds what the job does not have: best_accuracy"


def with_accuracy(*appended: str) -> GoodRun:
    run = good_run()
    for rank in (0, 1):
        run.saved[rank].state["best_accuracy"] = np.array(0.875, np.float32)
        if appended:
            run.only("checkpoint.end", rank=rank, kind="end-of-life")["appended"] = list(appended)
    return run


def test_a_value_that_the_save_is_recorded_to_have_appended_passes(judged: Judge) -> None:
    assert not_passed(judged(with_accuracy("best_accuracy", "step_num"))) == []


def test_a_value_that_nobody_has_appended_fails(judged: Judge) -> None:
    assert said(judged(with_accuracy()), "checkpoint", "fail", STRANGE)
    assert said(judged(with_accuracy("step_num")), "checkpoint", "fail", STRANGE)
