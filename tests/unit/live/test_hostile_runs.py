"""Whatever the files of a run hold, its state is data, and who follows it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.writer import HistoryWriter
from chaos.live import as_json, follow
from chaos.live.ranks import Ranks
from chaos.live.state import LiveState
from chaos.live.terminal.panel import lines
from chaos.plan import io
from chaos.plan.parts.fault import PlannedFault
from tests.kit.plans import plan_with
from tests.kit.runs.live_states import printed

Described = Callable[..., Path]


@pytest.fixture
def described(tmp_path: Path) -> Described:
    """Describe a run with these values of its plan and of run.json."""

    def described(plan: dict[str, Any], run: Any) -> Path:
        (tmp_path / "history").mkdir()
        (tmp_path / "run.json").write_text(json.dumps(run))
        fault = PlannedFault("kill", "kill", (1,), {"step": 5, "phase": "step.end"}, {}, None, 1)
        (tmp_path / "plan.json").write_text(json.dumps(json.loads(io.dumps(plan_with(faults=(fault,)))) | plan))
        return tmp_path

    return described


def shown(state: LiveState) -> str:
    json.dumps(as_json(state), allow_nan=False)
    return printed(lines(state, 40), 200)


@pytest.mark.parametrize("run", [[], {"cores": 5}, {"call": 5, "run": [], "scenario": {}, "cores": {"a": 1}}])
def test_a_run_that_is_described_oddly_is_followed(described: Described, run: Any) -> None:
    state = follow(described({}, run)).state()
    assert (len(state.ranks), state.problems, state.cores) == (2, (), ())
    assert "ranks" in shown(state)


@pytest.mark.parametrize("groups", [[[-9, 0]], [[10**9]], []])
def test_ranks_that_a_job_does_not_have_are_in_no_group(described: Described, groups: list[list[int]]) -> None:
    state = follow(described({"replica_groups": groups, "loss_ranks": [-9, -9]}, {})).state()
    assert (len(state.ranks), state.problems) == (2, ())


@pytest.mark.parametrize("ranks", [10**12, -1])
def test_a_plan_of_more_ranks_than_any_job_has_is_not_followed(
    described: Described, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Ranks, "__init__")
    state = follow(described({"ranks": ranks}, {})).state()
    assert (state.ranks, state.problems) == ((), ("plan.json: cannot be read",))


def test_a_run_that_was_broken_off_waits_for_nothing_and_its_clock_stands(described: Described) -> None:
    directory = described({}, {})
    path = directory / "history" / "harness.jsonl"
    with HistoryWriter(path, writer="harness", run="r", clock=SYSTEM_CLOCK) as history:
        history.record("run.start", limit=600.0)
        history.record("attempt.start", attempt="train")
        last = history.record("wait.begin", attempt="train", name="end", goal="every rank ends", seconds=300.0)
    state = follow(directory).state(last.wall + 86_400 * 10**9)
    assert (state.stage, state.waiting) == ("broken off", None)
    assert state.elapsed is not None and state.elapsed < 86_400


def test_a_run_that_cannot_be_followed_says_so_and_shows_nothing_old(described: Described) -> None:
    directory = described({}, {})
    follower = follow(directory)
    assert follower.state().problems == ()
    plan = json.loads((directory / "plan.json").read_text())
    plan["faults"][0]["trigger"] = {"elapsed": "\x1b[2J"}
    (directory / "plan.json").write_text(json.dumps(plan))
    for _ in range(2):
        state = follower.state()
        (problem,) = state.problems
        assert problem.startswith("the run cannot be followed: ValueError")
        assert (state.ranks, state.stage) == ((), "broken off")
        assert "\x1b[2J" not in shown(state)
