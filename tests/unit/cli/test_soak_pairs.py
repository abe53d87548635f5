"""A soak runs two cells that are compared together, so that their comparison is soaked too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.cli.soak import _groups, _name, _read
from chaos.scenario.load import load_scenario
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
    assert [_name(cells) for _, cells in _groups(pairs)] == names
    alone = list(_groups(pairs[:1]))
    assert [_name(cells) for _, cells in alone] == [("kill-rank", "victim=1")]


def answer(*verdicts: str | None, verdict: str = "pass") -> str:
    cells: list[dict[str, Any]] = [{"verdict": one, "run": f"run-{n}"} for n, one in enumerate(verdicts)]
    return json.dumps({"verdict": verdict, "cells": cells})


def test_the_verdict_is_that_of_cells_and_comparison() -> None:
    assert _read(answer("pass", "pass", verdict="fail")) == ("fail", ["run-0", "run-1"])
    assert _read(answer("pass", "pass")) == ("pass", ["run-0", "run-1"])
    assert _read(answer("pass", None, verdict="unknown")) == (None, ["run-0", "run-1"])
    assert _read(answer()) == (None, [])
    assert _read("Traceback") == (None, [])
