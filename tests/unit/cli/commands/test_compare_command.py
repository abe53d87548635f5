"""`chaos compare`, and the comparisons that `chaos run` makes by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.plan.parts.comparison import Comparison
from chaos.report.analyze import analyze
from chaos.run.options import RunOutcome
from chaos.run.prepare.prepared import Prepared
from tests.kit.runs.good_run import good_run
from tests.unit.cli.kit import SCENARIO, Ended

Call = Callable[..., Ended]

PAIR = SCENARIO.replace("variables: {victim: 1}", "matrix: {victim: [1, 2]}") + (
    "compare: {axis: victim, at_most: {load: 0.5}}\n"
)


def a_run(directory: Path, cell: str) -> Path:
    """A run that passes; its phases are always the same."""
    run = good_run()
    run.replan(cell=cell, comparison=Comparison("victim", {"load": 0.5}))
    return run.write(directory)


def run_cell(prepared: Prepared, options: Any, progress: Any) -> RunOutcome:
    """Stands for the driver."""
    cell = prepared.cell
    directory = a_run(options.reports / f"run-{cell.values['victim']}", cell.name)
    return RunOutcome(directory, analyze(directory).verdict, False)


@pytest.fixture
def two_runs(place: Path) -> Path:
    for number in (1, 2):
        a_run(place / "reports" / f"run-{number}", f"victim={number}")
    return place


def test_runs_are_compared_by_what_the_plan_says(chaos: Call, two_runs: Path) -> None:
    ended = chaos("compare", "run-1", "run-2", "--json")
    assert ended.code == 1, ended.err  # the phase is as long as before
    (statement,) = json.loads(ended.out)["statements"]
    assert (statement["measure"], statement["verdict"]) == ("load", "fail")


def test_the_command_line_can_say_what_must_shrink(chaos: Call, two_runs: Path) -> None:
    ended = chaos("compare", "run-1", "run-2", "--at-most", "total=1")
    assert ended.code == 0, ended.out + ended.err
    assert "total: pass" in ended.out


@pytest.mark.parametrize("text", ["load", "load=2", "load=0", "loud=0.5", "load=x"])
def test_a_rule_that_is_none_is_bad_usage(chaos: Call, two_runs: Path, text: str) -> None:
    assert chaos("compare", "run-1", "run-2", "--at-most", text).code == 64


def test_a_pair_of_cells_is_compared_once_both_were_run(
    chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "scenarios" / "kill-rank.yaml").write_text(PAIR)

    monkeypatch.setattr("chaos.run.driver.run_cell", run_cell)
    ended = chaos("run", "kill-rank", "--json")
    answer = json.loads(ended.out)
    assert [cell["verdict"] for cell in answer["cells"]] == ["pass", "pass"]
    (comparison,) = answer["comparisons"]
    assert comparison["cells"] == ["victim=1", "victim=2"]
    assert (ended.code, answer["verdict"], comparison["verdict"]) == (1, "fail", "fail")
    assert json.loads((place / "reports" / "summary.json").read_text())["verdict"] == "fail"


def test_a_cell_that_is_run_alone_is_not_compared(chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "scenarios" / "kill-rank.yaml").write_text(PAIR)
    monkeypatch.setattr("chaos.run.driver.run_cell", run_cell)
    alone = chaos("run", "kill-rank", "--cell", "victim=1", "--json")
    assert (alone.code, json.loads(alone.out)["comparisons"]) == (0, [])
