"""A soak runs two cells that are compared together, so that their comparison is soaked too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chaos.cli import codes
from chaos.cli.soak.cells import groups_of, name_of
from chaos.cli.soak.report import exit_code
from chaos.cli.soak.runs import read_answer
from chaos.scenario.load import load_scenario
from chaos.soak.soak import Tally
from tests.unit.cli.kit import SCENARIO

MATRIX = SCENARIO.replace("variables: {victim: 1}", "matrix: {victim: [1, 2]}")
PAIR = MATRIX + "compare: {axis: victim, at_most: {load: 0.5}}\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (MATRIX, [("kill-rank", "victim=1"), ("kill-rank", "victim=2")]),
        (PAIR, [("kill-rank", "victim=1 | victim=2")]),
    ],
)
def test_cells_that_are_compared_are_one_entry(tmp_path: Path, text: str, names: list[tuple[str, str]]) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(text)
    loaded = load_scenario(path)
    pairs = [(loaded, cell) for cell in loaded.cells]
    assert [name_of(cells) for _, cells in groups_of(pairs)] == names
    alone = list(groups_of(pairs[:1]))
    assert [name_of(cells) for _, cells in alone] == [("kill-rank", "victim=1")]


def test_a_cell_whose_partner_is_not_picked_is_run_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(re.sub(r"steps: \d+", 'steps: "${steps}"', PAIR).replace("[1, 2]}", "[1, 2], steps: [12, 14]}", 1))
    loaded = load_scenario(path)
    picked = [(loaded, cell) for cell in loaded.cells if cell.values != {"victim": 2, "steps": 14}]
    assert len(picked) == 3
    groups = [[cell.values for cell in cells] for _, cells in groups_of(picked)]
    assert groups == [
        [{"victim": 1, "steps": 12}, {"victim": 2, "steps": 12}],
        [{"victim": 1, "steps": 14}],
    ]


def answer(*verdicts: str | None, verdict: str = "pass") -> str:
    cells: list[dict[str, Any]] = [{"verdict": one, "run": f"run-{n}"} for n, one in enumerate(verdicts)]
    return json.dumps({"verdict": verdict, "cells": cells})


def test_the_verdict_is_that_of_cells_and_comparison() -> None:
    assert read_answer(answer("pass", "pass", verdict="fail")) == ("fail", ["run-0", "run-1"], "", "")
    assert read_answer(answer("pass", "pass")) == ("pass", ["run-0", "run-1"], "", "")
    assert read_answer(answer("pass", None, verdict="unknown")) == (None, ["run-0", "run-1"], "", "")
    assert read_answer(answer()) == (None, [], "", "")
    assert read_answer("Traceback") == (None, [], "", "")


def test_the_checks_that_fail_are_told(tmp_path: Path) -> None:
    result = json.loads(answer("fail", "pass", verdict="fail"))
    checks = [("loss", "fail"), ("run", "pass"), ("loss", "fail"), ("resume", "fail"), ("history", "unknown")]
    result["cells"][0]["result"] = {"checks": [{"name": name, "verdict": verdict} for name, verdict in checks]}
    assert read_answer(json.dumps(result))[2] == "loss resume"
    assert read_answer(json.dumps(result))[3] == "vendor"  # nothing of it was simulated
    result["comparisons"] = [{"verdict": "fail"}]
    assert read_answer(json.dumps(result))[2] == "loss resume comparison"


def counted(
    expected_verdict: str = "pass", *, passed: int = 0, failed: int = 0, unknown: int = 0, harness: int = 0
) -> Tally:
    return Tally("kill-rank", "", {"pass": passed, "fail": failed, "unknown": unknown}, harness, expected_verdict)


@pytest.mark.parametrize(
    ("tallies", "code"),
    [
        ([counted(passed=2)], codes.PASS),
        ([counted(passed=1)], codes.UNKNOWN),
        ([counted(passed=2), counted()], codes.UNKNOWN),
        ([], codes.UNKNOWN),
        ([counted(passed=1, failed=1), counted()], codes.FAIL),
        ([counted(passed=1, unknown=1)], codes.UNKNOWN),
        ([counted("fail", failed=2)], codes.PASS),
        ([counted("fail")], codes.UNKNOWN),
        ([counted("fail", failed=1, passed=1)], codes.FAIL),
        ([counted(harness=1)], codes.HARNESS),
    ],
)
def test_fewer_runs_than_were_asked_for_show_nothing(tallies: list[Tally], code: int) -> None:
    assert exit_code(tallies, 2) == code
