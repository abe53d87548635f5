"""Real replica groups of torchft: a lost group is healed, and one that is not, or not rightly, fails for its reason."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.kit.runs.recorded_bases import hold_against
from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torchft") is None, reason="torchft is not installed here"),
]

SCENARIO = "torchft-kill-group"
LOAD = "            part.load_state_dict(state[name])\n"
PRINT = "        if manager.current_step() == step:\n"
BUGS = {
    "heal skipped": (LOAD, "            pass\n", "with another state than rank"),
    "moments of the heal lost": (
        LOAD,
        LOAD
        + """        for slots in inner.state.values():
            slots["exp_avg"].zero_()
""",
        "optimizer.exp_avg",
    ),
    "a weight altered after the heal": (
        PRINT,
        """        if manager.current_step() == 20 and group == 1:
            with torch.no_grad():
                next(model.parameters())[0, 0] += 1e-3
"""
        + PRINT,
        "ranks 0 and 1 disagree after step 21",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_group_with_another_state_fails_for_its_reason(fresh: Chaos, tmp_path: Path, bug: str) -> None:
    old, new, reason = BUGS[bug]
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    text = (SHIPPED / "torch" / "jobs" / "train_torchft.py").read_text()
    assert text.count(old) == 1
    (jobs / "train_torchft.py").write_text(text.replace(old, new))
    shutil.copy(SHIPPED / "torch" / f"{SCENARIO}.yaml", tmp_path)
    done = fresh.run(tmp_path / f"{SCENARIO}.yaml")
    assert done.code == 1, done
    failures = [said for said in done.run.result["checks"] if said["verdict"] == "fail"]
    assert any(reason in f"{said['seen']}" for said in failures), done


def test_the_recorded_run_of_the_selftest_is_as_one_made_today(fresh: Chaos, tmp_path: Path) -> None:
    done = fresh.run(SHIPPED / "torch" / f"{SCENARIO}.yaml")
    assert done.code == 0, done
    hold_against(SCENARIO, done.run.path, tmp_path)
