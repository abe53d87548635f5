"""A job of PyTorch with the habits of public examples goes from ``chaos init`` to *pass*, without a change of it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from chaos.scenario.load import load_scenario
from tests.rehearsal.kit import Chaos, Done

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

SCRIPT = Path(__file__).parent / "torch_habits" / "fit.py"


def run(fresh: Chaos, directory: Path, launch: str, *change: str) -> Done:
    script = directory / "fit.py"
    shutil.copy(SCRIPT, script)
    if change:
        before, after = change
        source = script.read_text()
        assert source.count(before) == 1
        script.write_text(source.replace(before, after))
    assert fresh("init", directory, "--launch", launch).code == 0
    return fresh.run(directory / "fit-kill.yaml")


@pytest.mark.parametrize("options", ["", "--max-restarts 2 "])
def test_epochs_a_snapshot_and_no_seed_are_no_obstacle(fresh: Chaos, tmp_path: Path, options: str) -> None:
    done = run(fresh, tmp_path, f"torchrun --nproc-per-node 2 {options}fit.py 4 1")
    assert done.code == 0, done
    scenario = load_scenario(tmp_path / "fit-kill.yaml").cells[0].scenario
    assert (scenario.job.steps, scenario.job.checkpoint_interval, scenario.job.seed_at_start) == (32, 8, True)
    assert done.run.history.first("load.end") is not None


def test_the_epoch_of_the_snapshot_must_not_be_trained_again(fresh: Chaos, tmp_path: Path) -> None:
    """So do well-known examples: they save the number of the epoch that has ended, and begin with it again."""
    launch = "torchrun --nproc-per-node 2 fit.py 4 1"
    done = run(fresh, tmp_path, launch, '"EPOCHS": epochs}', '"EPOCHS": epochs - 1}')
    assert done.code == 1, done
    assert "trained another batch" in str(done.run.result["checks"])
