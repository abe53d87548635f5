"""Several cells in one call: their order, when it ends, and what summary.json says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from chaos.base.refusal import Refused
from chaos.cli import scenarios
from chaos.report.summary import Summary, write_summary
from chaos.run.cells import run_cells


@dataclass
class Outcome:
    """What the fake run of a cell gives."""

    run_dir: Path
    verdict: str
    interrupted: bool = False


def cells(*names: str) -> list[Any]:
    """Prepared cells of one scenario, s."""
    loaded, scenario = SimpleNamespace(path=Path("s.yaml")), SimpleNamespace(name="s")
    found = [SimpleNamespace(name=name, scenario=scenario) for name in names]
    return [SimpleNamespace(loaded=loaded, cell=cell, scenario=scenario) for cell in found]


def run(outcomes: dict[str, Any], *, keep_going: bool = False) -> tuple[Summary, list[Summary]]:
    """Run cells that end as given: an Outcome or an exception."""
    seen: list[Summary] = []
    ticks: Iterator[float] = iter(range(100))

    def run_cell(prepared: Any) -> Outcome:
        outcome = outcomes[prepared.cell.name]
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, Outcome)
        return outcome

    summary = run_cells(
        cells(*outcomes),
        run_cell,
        started="2025-01-01T00:00:00+00:00",
        clock=lambda: next(ticks),
        keep_going=keep_going,
        failed=str,
        done=seen.append,
    )
    return summary, seen


def ends(verdict: str, name: str = "run") -> Outcome:
    """A run that ends with this verdict."""
    return Outcome(Path("/r") / name, verdict)


def test_the_worst_verdict_is_that_of_the_call() -> None:
    summary, seen = run({"a": ends("pass", "r1"), "b": ends("unknown", "r2"), "c": ends("fail", "r3")}, keep_going=True)
    assert (summary.verdict, [cell.run for cell in summary.cells], summary.not_run) == ("fail", ["r1", "r2", "r3"], ())
    assert [len(one.cells) for one in seen] == [1, 2, 3]
    assert [cell.seconds for cell in summary.cells] == [1, 1, 1]


def test_without_keep_going_the_first_that_does_not_pass_ends_it() -> None:
    summary, _ = run({"a": ends("pass"), "b": ends("unknown"), "c": ends("pass")})
    assert (summary.verdict, summary.not_run) == ("unknown", ("s[c]",))


@pytest.mark.parametrize(("keep_going", "ran"), [(False, 1), (True, 2)])
def test_a_failure_of_the_harness_is_recorded_and_is_no_verdict(keep_going: bool, ran: int) -> None:
    summary, _ = run({"a": ValueError("broken"), "b": ends("pass")}, keep_going=keep_going)
    assert (len(summary.cells), summary.verdict) == (ran, "unknown")
    assert (summary.cells[0].verdict, summary.cells[0].error) == (None, "broken")


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), Outcome(Path("/r/run"), "unknown", interrupted=True)])
def test_ctrl_c_always_ends_it(ending: object) -> None:
    summary, seen = run({"a": ends("pass"), "b": ending, "c": ends("pass")}, keep_going=True)
    assert (summary.interrupted, summary.verdict, summary.not_run[-1]) == (True, "unknown", "s[c]")
    assert seen[-1] == summary


def test_summary_json_is_replaced_in_one_piece(tmp_path: Path) -> None:
    summary, _ = run({"a": ends("pass", "r1")})
    path = write_summary(summary, tmp_path / "reports")
    assert json.loads(path.read_text()) == {
        "schema_version": 1,
        "started": "2025-01-01T00:00:00+00:00",
        "verdict": "pass",
        "interrupted": False,
        "cells": [
            {
                "scenario": "s",
                "cell": "a",
                "run": "r1",
                "verdict": "pass",
                "seconds": 1,
                "directory": "/r/r1",
                "error": None,
                "refused": False,
            }
        ],
        "not_run": [],
        "comparisons": [],
    }
    assert [file.name for file in path.parent.iterdir()] == ["summary.json"]


def test_a_call_is_refused_as_a_whole_by_the_cell_whose_input_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []

    def prepare(loaded: Any, cell: Any, *_: object) -> Any:
        del loaded
        if cell.name == "b":
            raise Refused("job.script: /jobs/model.py: is a FIFO; make it readable")
        prepared.append(cell.name)

    monkeypatch.setattr("chaos.run.prepare.prepare.prepare", prepare)
    pairs = [(cell.loaded, cell.cell) for cell in cells("a", "b", "c")]
    with pytest.raises(click.UsageError) as refused:
        scenarios.prepare_cells(pairs, "auto")
    assert str(refused.value) == (
        "s.yaml: cell 'b': job.script: /jobs/model.py: is a FIFO; make it readable; no cell of this call was started: "
        "mend this one, or leave it out"
    )
    assert prepared == ["a"]
    with pytest.raises(click.UsageError, match=r"^job\.script: .*make it readable$"):
        scenarios.prepare_cells(pairs[1:2], "auto")
