"""MindSpore's own loops are found by their gradients and updates, compiled or not, and no wrong step is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "kit" / "jobs" / "mindspore_loops.py"
STEPS = [["step.begin", 1], ["step.end", 1], ["step.begin", 2], ["step.end", 2]]
WHOLE = ["forward", "step.end"]
APART = ["forward", "optimizer.update", "step.end"]


@pytest.fixture(scope="module")
def counted(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the agent has recorded of each loop. One worker makes the loops, and the others wait for it."""
    outcome = shared / "own-loops.json"
    with FileLock(shared / "own-loops.lock"):
        if not outcome.exists():
            program = [sys.executable, str(PROGRAM), str(tmp_path_factory.mktemp("records"))]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
            outcome.write_text(done.stdout.splitlines()[-1])
    return json.loads(outcome.read_text())


@pytest.mark.parametrize(
    ("habit", "phases"),
    [
        ("value_and_grad", APART),
        ("value_and_grad_in_graph_mode", APART),
        ("compiled_step_and_evaluation", WHOLE),
        ("compiled_gradient", APART),
        ("grad_operation", APART),
        ("train_one_step_cell", APART),
        ("train_one_step_cell_in_graph_mode", WHOLE),
        ("an_optimizer_round_another", APART),
    ],
)
def test_each_update_is_a_step(counted: Any, habit: str, phases: list[str]) -> None:
    found = counted[habit]
    assert found["unclear"] == []
    assert found["steps"] == STEPS
    assert found["phases"] == phases
    assert found["batches"] == found["moved"] == 2


def test_loss_and_whole_state_are_recorded(counted: Any) -> None:
    same = ("value_and_grad", "value_and_grad_in_graph_mode", "compiled_step_and_evaluation", "compiled_gradient")
    losses = [[float.fromhex(loss) for loss in counted[habit]["losses"]] for habit in same]
    assert all(first > second > 0 for first, second in losses[:3])
    assert losses[1] == pytest.approx(losses[0])
    assert losses[2] == pytest.approx(losses[0])
    assert losses[3][0] == pytest.approx(losses[0][0])
    assert counted["grad_operation"]["losses"][0] is not None
    for habit in same:
        assert {"0.weight", "1.moving_mean", "1.gamma", "moments.0.weight", "global_step"} <= set(
            counted[habit]["state"]
        )


def test_an_evaluation_is_no_step(counted: Any) -> None:
    assert counted["evaluation_only"]["steps"] == counted["evaluation_only"]["unclear"] == []


@pytest.mark.parametrize(
    ("habit", "reason"),
    [
        ("accumulation", "a second gradient was computed in step 1"),
        ("two_optimizers", "there are two optimizers, Momentum and Momentum"),
    ],
)
def test_a_loop_with_several_meanings_is_not_counted(counted: Any, habit: str, reason: str) -> None:
    (unclear,) = counted[habit]["unclear"]
    assert reason in unclear
    assert ["step.end", 1] not in counted[habit]["steps"]
