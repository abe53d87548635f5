"""The result of a finished run follows from its files alone, and a change that moves code changes no byte of it.

Each run is judged in a directory of its own, in another time zone than the one of the recording. What differs from the
recorded result is either a mistake, or is recorded anew by hand (see record.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from chaos.scenario.models.mechanisms import mechanism_names
from tests.oracle.recorded_runs import RESULTS, RecordedRun, recorded_runs

_RUNS = recorded_runs()
_SHOWN = 40
"""Lines of a difference that are shown; the rest seldom says more."""


@pytest.fixture(autouse=True)
def other_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Judge where clocks show 5:45 more than UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "OTHER-5:45")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("run", _RUNS, ids=lambda run: run.name)
def test_a_recorded_run_gets_the_same_result(run: RecordedRun, tmp_path: Path) -> None:
    recorded = run.result.read_text(encoding="utf-8")
    today = run.judge_again(tmp_path / "run")
    if today != recorded:
        pytest.fail(f"{run.name} is judged otherwise than recorded:\n{_difference(recorded, today)}", pytrace=False)


def test_every_result_belongs_to_a_run() -> None:
    assert sorted(RESULTS.iterdir()) == sorted(run.result for run in _RUNS) != []


def test_every_verdict_and_every_mechanism_is_there() -> None:
    results = [_recorded(run) for run in _RUNS]
    assert {result["verdict"] for result in results} == {"pass", "fail", "unknown"}
    mechanisms = {name for result in results for name in (result["recovery"]["mechanism"] or "").split(", ")}
    assert mechanisms >= set(mechanism_names())


def test_a_run_with_changed_evidence_does_not_pass() -> None:
    changed = {run.name: _recorded(run)["verdict"] for run in _RUNS if run.change is not None}
    assert changed and [name for name, verdict in changed.items() if verdict == "pass"] == []


def _recorded(run: RecordedRun) -> dict[str, Any]:
    result = json.loads(run.result.read_text(encoding="utf-8"))
    assert isinstance(result, dict)
    return result


def _difference(recorded: str, today: str) -> str:
    lines = list(unified_diff(recorded.splitlines(), today.splitlines(), "recorded", "today", n=2, lineterm=""))
    rest = len(lines) - _SHOWN
    return "\n".join([*islice(lines, _SHOWN), *([f"… and {rest} more lines"] if rest > 0 else [])])
