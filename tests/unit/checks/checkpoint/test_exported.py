"""Weights that a job exports behind its training are no checkpoint that lacks the optimizer's state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kit.runs.good_run import LAST, SAVED, GoodRun, Saved, pid_of, record, state_after
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.judging import Judge, not_passed, said

FINAL = "final_{0}.ckpt"
BEHIND, WITHIN = 24.05, 23.95
"""Seconds: the training of the resumed job ends at 24."""


def exporting(*, at: float = BEHIND, name: str = FINAL, **extra: np.ndarray[Any, Any]) -> GoodRun:
    """Every rank of the resumed job saves its weights."""
    run = restored_run()
    for rank in range(4):
        weights = {one: value for one, value in state_after(rank, LAST).items() if one.startswith("layer1.")}
        path = name.format(rank)
        run.saved[10 + rank] = Saved(f"job/{path}", {**weights, **extra}, {})
        place: dict[str, Any] = {"attempt": "resume", "rank": rank, "pid": pid_of("resume", rank), "step": LAST}
        for number, event in enumerate(("checkpoint.begin", "checkpoint.end")):
            run.add(f"resume-rank_{rank}", record(at + 0.01 * number, event, kind="periodic", path=path, **place))
    return run


def test_weights_that_are_saved_behind_the_training_pass_and_are_compared(judged: Judge) -> None:
    run = exporting()
    assert not_passed(judged(run)) == []
    assert said(judged(run), "checkpoint", "pass", "7 files compared by digest")
    run.saved[11].state["layer1.bias"] = np.zeros(3, np.float32)
    assert said(judged(run), "checkpoint", "fail", "1 of 2 parameters in rank 1's file of step 12 differ: layer1.bias")


def test_a_weight_that_is_not_among_them_is_missed(judged: Judge) -> None:
    run = exporting()
    del run.saved[11].state["layer1.bias"]
    assert said(judged(run), "checkpoint", "fail", "rank 1's file lacks parameters: layer1.bias")


@pytest.mark.parametrize(
    "run",
    [
        exporting(at=WITHIN),
        exporting(name="checkpoints/rank_{0}/sliced_1-1_12.ckpt"),
        exporting(learning_rate=np.array(0.1, np.float32)),
    ],
    ids=["while training goes on", "under a name that counts steps", "with a part of the optimizer's state"],
)
def test_what_is_there_to_go_on_from_lacks_the_optimizers_state(run: GoodRun, judged: Judge) -> None:
    assert said(judged(run), "checkpoint", "fail", "lacks optimizer state: global_step, ")


def test_the_failure_says_how_such_a_file_is_named_in_the_scenario(judged: Judge) -> None:
    hint = "if no start goes on from this file, name it in job.exports"
    assert said(judged(exporting(at=WITHIN)), "checkpoint", "fail", hint)
    with_a_part = exporting(learning_rate=np.array(0.1, np.float32))
    assert not said(judged(with_a_part), "checkpoint", "fail", hint)


def test_a_file_with_nothing_of_the_state_is_unknown_where_a_later_one_holds_it(judged: Judge) -> None:
    """A job may save the losses, or data that it has prepared, in the way in which it saves its checkpoints."""
    run = exporting(at=WITHIN, name="losses_{0}.ckpt")
    for rank in range(4):
        run.saved[10 + rank].state = {"losses": np.zeros(3, np.float32)}
    lacks = "rank 1's file lacks parameters: "
    assert said(judged(run), "checkpoint", "fail", lacks)
    for rank in range(4):
        run.only("checkpoint.begin", path=f"losses_{rank}.ckpt")["step"] = SAVED
        run.only("checkpoint.end", path=f"losses_{rank}.ckpt")["step"] = SAVED
    judgement = judged(run)
    assert said(judgement, "checkpoint", "unknown", "file losses_1.ckpt holds nothing of the state of the rank; if no")
    assert not said(judgement, "checkpoint", "fail", lacks)
    for lost in ({"step_num": np.array(LAST, np.int32)}, {"moments.layer1.bias": np.zeros(3, np.float32)}):
        run.saved[11].state = lost
        assert said(judged(run), "checkpoint", "fail", "rank 1's file")
