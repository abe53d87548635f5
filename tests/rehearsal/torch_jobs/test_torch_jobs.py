"""Real jobs of PyTorch under torchrun: from ``chaos init`` to *pass*, and to *fail* where the script has a bug."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos, Done

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

LAUNCH = "torchrun --nproc-per-node 2 train.py --steps 12 --save-every 4"


def run(fresh: Chaos, directory: Path, *change: str) -> Done:
    """Let ``chaos init`` write the scenario of the shipped script, changed by replacing a text, and run it."""
    script = directory / "train.py"
    shutil.copy(SHIPPED / "torch" / "jobs" / "train_ddp.py", script)
    if change:
        before, after = change
        source = script.read_text()
        assert source.count(before) == 1
        script.write_text(source.replace(before, after))
    assert fresh("init", directory, "--launch", LAUNCH, "--fault-step", "10").code == 0
    return fresh.run(directory / "train-kill.yaml")


def test_a_script_goes_from_init_to_pass_without_a_change(fresh: Chaos, tmp_path: Path) -> None:
    done = run(fresh, tmp_path)
    assert done.code == 0, done
    loads = done.run.history.select("load.end", attempt="resume")
    assert {event.rank for event in loads} == {0, 1}


BUGS = {
    "moments lost": (
        '        optimizer.load_state_dict(saved["optimizer"])\n',
        "",
        "weights and optimizer state were not",
    ),
    "schedule begun anew": ('        schedule.load_state_dict(saved["schedule"])\n', "", "the weights were not"),
    "other noise": ("args.seed * 100_000 + step * ranks + rank", "args.seed + step - done", "losses differ"),
    "batch skipped": ("if step <= done:", "if step <= done + (done > 0):", "trained another batch"),
    "older checkpoint": ("sorted(found, reverse=True)", "sorted(found)", "step 4 was saved, so the next is step 5"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_resume_fails_for_its_own_reason(fresh: Chaos, tmp_path: Path, bug: str) -> None:
    before, after, reason = BUGS[bug]
    done = run(fresh, tmp_path, before, after)
    assert done.code == 1, done
    assert reason in done.run.result["headline"]["text"]
