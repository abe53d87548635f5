"""The state of a run is there at every moment of the run, and at its end it agrees with the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.live import as_json, follow, follower, recovery
from chaos.live.state import STATES
from tests.kit.runs.replayed_run import begun, recorded, replayed
from tests.kit.spread import daily
from tests.oracle.recorded_runs import RESULTS, RUNS

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in RUNS.glob("*.tar.xz"))
DAILY = ("plain-kill-rank", "plain-arf-twice-clean", "live-uce", "plain-tsp", "in-vain", "second-error-not-repaired")
RESTARTED = "older-step-when-a-file-is-damaged"


@pytest.fixture
def run(name: str, tmp_path: Path) -> Path:
    directory = recorded(name, tmp_path / "recorded")
    (directory / "result.json").write_text((RESULTS / f"{name}.json").read_text("utf-8"), "utf-8")
    return directory


@pytest.mark.parametrize("name", daily(NAMES, *DAILY))
def test_every_moment_of_a_run_has_a_state_and_the_last_is_that_of_the_result(run: Path, tmp_path: Path) -> None:
    place = begun(run, tmp_path / "again")
    following = follow(place)
    for wall in replayed(run, place, parts=24):
        state = following.state(wall)
        data = json.loads(json.dumps(as_json(state), allow_nan=False))
        assert sum(data["states"].values()) == data["ranks"] == len(data["rank"])
        assert set(data["states"]) <= set(STATES)
        assert all(sum(group["states"].values()) == group["count"] for group in data["groups"])
        assert data["stage"] != "ended"
    last, at_once = following.state(wall), follow(run).state(wall)
    assert last.stage == at_once.stage == "ended"
    step_by_step, whole = as_json(last), as_json(at_once)
    for field in ("verdict", "step", "rank", "faults", "ends", "loss", "groups", "elapsed"):
        assert step_by_step[field] == whole[field], field
    result = json.loads((run / "result.json").read_text("utf-8"))
    assert last.verdict == result["verdict"]
    assert bool(last.ends.unplanned) == _blames_an_end(result)


@pytest.mark.parametrize("name", daily(NAMES, *DAILY[:4], RESTARTED))
def test_the_phases_of_the_recovery_are_those_of_the_result(run: Path) -> None:
    state = follow(run).state()
    result = json.loads((run / "result.json").read_text("utf-8"))
    measured = result["recovery"]["phases"]
    if result["recovery"]["total"] is None:
        return
    assert state.recovery is not None
    shown = {phase.name: phase.seconds for phase in state.recovery.phases}
    assert state.recovery.mechanism in result["recovery"]["mechanism"]
    assert shown == pytest.approx(measured, abs=1e-3)
    assert state.recovery.elapsed == pytest.approx(result["recovery"]["total"], abs=1e-3)


@pytest.mark.parametrize("name", ["plain-kill-rank"])
def test_a_run_that_has_ended_is_looked_at_once_more_however_seldom_that_is(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_BETWEEN_LOOKS_NS", 3600 * 10**9)
    place = begun(run, tmp_path / "again")
    following = follow(place)
    for wall in replayed(run, place, parts=6):
        following.state(wall)
    assert as_json(following.state(wall))["recovery"] == as_json(follow(run).state(wall))["recovery"]


@pytest.mark.parametrize("name", ["plain-kill-rank"])
def test_a_long_history_is_read_in_parts_and_a_run_is_not_over_before_its_last(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = follow(run).state(0)
    monkeypatch.setattr(follower, "_MOST_EVENTS", 50)
    slow = follow(run)
    stages = []
    while (state := slow.state(0)).problems:
        assert state.problems == ("the history is long and still being read: an earlier moment is shown",)
        stages.append(state.stage)
    assert {"train", "resume"} <= {*stages} and not {"ended", "broken off"} & {*stages}
    assert as_json(state) == as_json(at_once)


def _blames_an_end(result: dict[str, Any]) -> bool:
    """Whether a statement of the result fails because of the end of a rank."""
    failed = [statement["expected"] for statement in result["checks"] if statement["verdict"] == "fail"]
    return any(expected.startswith(("rank", "the new process")) and " ends with " in expected for expected in failed)
