"""Steps that are trained again, and the time that saving takes from training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.recovery.measures import rollback, stalled
from chaos.history.reader import History, read_history
from tests.kit.runs.good_run import GoodRun, good_run


def history(run: GoodRun, directory: Path) -> History:
    return read_history(run.write(directory) / "history")


def test_an_end_of_life_checkpoint_loses_nothing(tmp_path: Path) -> None:
    assert rollback(good_run().plan, history(good_run(), tmp_path)).value == 0


def test_steps_trained_again_are_counted(tmp_path: Path) -> None:
    run = good_run()
    for record in run.events("step.begin", attempt="resume"):
        record["step"] -= 3
    for record in run.events("step.end", attempt="resume"):
        record["step"] -= 3
    assert rollback(run.plan, history(run, tmp_path)).value == 3


def test_a_sink_that_is_trained_again_counts_with_all_its_steps(tmp_path: Path) -> None:
    """The record of a sink of two steps bears the number of its last step."""
    run = good_run()
    run.replan(sink_size=2)
    for name in ("step.begin", "step.end"):
        for record in run.events(name):
            record["step"] = 2 * record["step"] - (4 if record["attempt"] == "resume" else 0)
    assert rollback(run.plan, history(run, tmp_path)).value == 4


@pytest.mark.parametrize("spoil", [lambda run: run.drop("fault.injecting"), GoodRun.without_resume])
def test_the_rollback_is_unknown_without_a_fault_or_training_after_it(
    tmp_path: Path, spoil: Callable[[GoodRun], Any]
) -> None:
    run = good_run()
    spoil(run)
    measured = rollback(run.plan, history(run, tmp_path))
    assert measured.value is None
    assert measured.reason


def saved(run: GoodRun, rank: int, step: int, seconds: float, *, kind: str = "periodic") -> None:
    """Let a rank save a checkpoint as it ends a step."""
    (end,) = run.events("step.end", attempt="train", rank=rank, step=step)
    fields = {"kind": kind, "path": f"mnist-1_{step}.ckpt"}
    prefix = f"train-rank_{rank}"
    for name, delay in (("checkpoint.begin", 1), ("checkpoint.end", 1 + int(seconds * 1e9))):
        run.add(prefix, {**end, "event": name, "mono": end["mono"] + delay, "wall": end["wall"] + delay, **fields})


def test_the_slowest_rank_says_how_long_training_stood_still(tmp_path: Path) -> None:
    run = good_run()
    for rank, seconds in ((0, 0.02), (1, 0.03)):
        saved(run, rank, 2, seconds)
        saved(run, rank, 4, seconds)
    assert stalled(history(run, tmp_path)).value == pytest.approx(0.06, abs=1e-6)


def test_end_of_life_checkpoints_take_no_time_from_training(tmp_path: Path) -> None:
    measured = stalled(history(good_run(), tmp_path))
    assert (measured.value, measured.reason) == (None, "no periodic checkpoint is recorded")


def test_a_save_without_an_end_is_not_measured(tmp_path: Path) -> None:
    run = good_run()
    saved(run, 0, 2, 0.02)
    run.drop("checkpoint.end", kind="periodic")
    assert stalled(history(run, tmp_path)).value is None
