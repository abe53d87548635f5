"""Real replica groups of torchft: a lost group is healed, and one that is not, or not rightly, fails for its reason."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.runs.recorded_bases import hold_against
from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos, Done

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


@pytest.fixture
def altered(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """A shipped scenario beside its script with a text replaced."""

    def altered(scenario: str, old: str, new: str) -> Path:
        jobs = tmp_path / "jobs"
        jobs.mkdir()
        text = (SHIPPED / "torch" / "jobs" / "train_torchft.py").read_text()
        assert text.count(old) == 1
        (jobs / "train_torchft.py").write_text(text.replace(old, new))
        return Path(shutil.copy(SHIPPED / "torch" / f"{scenario}.yaml", tmp_path))

    return altered


def reasons(done: Done, verdict: str = "fail") -> list[str]:
    """Return what the statements with this verdict have seen."""
    return [f"{said['seen']}" for said in done.run.result["checks"] if said["verdict"] == verdict]


@pytest.mark.parametrize("bug", BUGS)
def test_a_group_with_another_state_fails_for_its_reason(
    fresh: Chaos, altered: Callable[[str, str, str], Path], bug: str
) -> None:
    old, new, reason = BUGS[bug]
    done = fresh.run(altered(SCENARIO, old, new))
    assert done.code == 1, done
    assert any(reason in seen for seen in reasons(done)), done


def test_without_the_lighthouse_the_groups_end_by_the_timeout(fresh: Chaos) -> None:
    done = fresh.run(SHIPPED / "torch" / "torchft-kill-lighthouse.yaml")
    assert done.code == 0, done
    history = done.run.history
    (act,) = history.select("fault.injecting")
    (found,) = history.select("launcher.found", role="lighthouse")
    assert (act.rank, act.pid, act.data["start_time"]) == (None, found.pid, found.data["start_time"])
    assert [end.data["signal"] for end in history.select("launcher.exit", role="lighthouse")] == [9]
    assert [end.data["code"] for end in history.select("rank.exit")] == [1, 1, 1], "no signal reached a group"


def test_groups_that_end_as_if_trained_without_their_lighthouse_fail(
    fresh: Chaos, altered: Callable[[str, str, str], Path]
) -> None:
    caught = "    try:\n        main()\n    except TimeoutError:\n        os._exit(0)\n"
    done = fresh.run(altered("torchft-kill-lighthouse", "    main()\n", caught))
    assert done.code == 1, done
    assert any("exit code 0, not by an error of its own" in seen for seen in reasons(done)), done


def test_a_stopped_group_is_healed_in_its_own_process_or_shows_the_known_finding(fresh: Chaos) -> None:
    done = fresh.run(SHIPPED / "torch" / "torchft-suspend-group.yaml")
    history = done.run.history
    (landed,), (healed,) = (history.select(name, fault="suspend") for name in ("fault.landed", "fault.healed"))
    assert healed.mono - landed.mono >= 20e9
    if done.code == 0:
        (stopped,) = landed.data["evidence"]
        votes = history.select("step.voted", rank=1, pid=stopped["pid"])
        assert any(vote.data["healed"] is True for vote in votes)
        return
    assert any("rank 0 was replaced" in seen for seen in reasons(done)), "F-19: a healthy group has ended"


@pytest.mark.parametrize("base", [SCENARIO, "torchft-kill-lighthouse", "torchft-suspend-between-steps"])
def test_the_recorded_run_of_the_selftest_is_as_one_made_today(fresh: Chaos, tmp_path: Path, base: str) -> None:
    done = fresh.run(SHIPPED / "torch" / f"{base}.yaml")
    assert done.code == 0, done
    hold_against(base, done.run.path, tmp_path)
