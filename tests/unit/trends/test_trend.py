"""Trends: percentiles, change points with what changed, and their forms for a terminal, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from chaos.report.analyze import analyze
from chaos.trends.store import FILE, changing, put_rows
from chaos.trends.trend import change_points, trends
from chaos.trends.trend_text import as_csv, print_trends, sparkline
from tests.kit.runs.good_run import good_run
from tests.kit.runs.many_runs import PHASES, a_row, nights
from tests.unit.cli.kit import Ended


def test_percentiles_and_spread_of_a_phase() -> None:
    rows = [a_row(number, phases={"load": float(number + 1)}) for number in range(100)]
    (trend,) = trends(rows)
    load, total = trend.phases
    assert (load.phase, total.phase, load.p50, load.p95) == ("load", "total", 50.5, 95.0)
    assert load.spread == pytest.approx(1.0)


def test_a_change_is_marked_with_what_changed_then() -> None:
    rows = nights(5, 100, slow_from=60)
    rows = [replace(row, mindspore="2.9.0") if row.started >= rows[180].started else row for row in rows]
    (trend,) = trends(rows, "kill-rank")
    (load,) = [phase for phase in trend.phases if phase.phase == "load"]
    (point,) = load.change_points
    assert abs(point.index - 60) <= 2
    assert point.changes == {"mindspore": ("2.8.0", "2.9.0")}
    assert point.medians[1] / point.medians[0] == pytest.approx(1.15, abs=0.04)
    assert not [phase.phase for phase in trend.phases if phase.change_points and phase.phase not in ("load", "total")]


def test_two_changes_are_both_found() -> None:
    dice = random.Random(1)
    times = [level * dice.lognormvariate(0, 0.05) for level in (5.0, 7.0, 4.0) for _ in range(30)]
    found = [index for index, _ in change_points(times, 0.001)]
    assert len(found) == 2 and abs(found[0] - 30) <= 2 and abs(found[1] - 60) <= 2


def test_noise_has_no_change_points() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        assert list(change_points([dice.lognormvariate(0, 0.05) for _ in range(100)], 0.001)) == []
    assert list(change_points([1.0] * 50, 0.001)) == list(change_points([], 0.001)) == []


def test_the_last_runs_and_soaks() -> None:
    rows = [a_row(number, soak=number >= 20) for number in range(30)]
    assert [trend.runs for trend in trends(rows)] == [20]
    assert [trend.runs for trend in trends(rows, last=5)] == [5]
    assert [trend.runs for trend in trends(rows, soak=True)] == [30]


def test_a_sparkline_goes_from_the_shortest_to_the_longest() -> None:
    assert sparkline([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) == "▁▂▃▄▅▆▇█"
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert len(sparkline([float(number) for number in range(500)])) == 30
    assert sparkline([1.0, 2.0], unicode=False).isascii()


def test_names_of_runs_are_text_and_no_markup() -> None:
    console = Console(file=io.StringIO(), width=200)
    print_trends(trends([a_row(0, "[red]x[/red]", {"[bold]load": 1.0})]), console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "[red]x[/red]: 1 run (1 pass)" in shown and "[bold]load" in shown


def test_csv_has_each_time_and_no_formula() -> None:
    found = list(csv.reader(io.StringIO(as_csv(trends([a_row(0, "=1+1", {"load": 1.5})])))))
    assert found == [
        ["cell", "run", "phase", "seconds"],
        ["'=1+1", "'=1+1-20250101-011700-0000", "load", "1.500000"],
        ["'=1+1", "'=1+1-20250101-011700-0000", "total", "1.500000"],
    ]


@pytest.fixture
def stored(reports: Path) -> Path:
    reports.mkdir()
    with changing(reports / FILE) as connection:
        put_rows(connection, nights(5, 100, slow_from=60))
    return reports


def test_the_command_shows_tables_json_and_csv(chaos: Callable[..., Ended], stored: Path) -> None:
    shown = chaos("trend", "kill-rank")
    assert shown.code == 0 and "kill-rank: 100 runs (100 pass)" in shown.out
    assert "Pettitt's test, p = " in shown.out.replace("\n", " ")
    answer = json.loads(chaos("trend", "--json", "--last", "20").out)
    assert [(trend["name"], trend["runs"]) for trend in answer["trends"]] == [
        ("kill-node", 20), ("kill-rank", 20), ("uce-repair", 20),
    ]  # fmt: skip
    assert len(chaos("trend", "--csv").out.splitlines()) == 1 + 300 * (len(PHASES) + 1)
    assert chaos("trend", "--csv", "--json").code == 64


def test_a_rebuild_adds_missing_runs_and_keeps_those_that_are_gone(chaos: Callable[..., Ended], stored: Path) -> None:
    analyze(good_run().write(stored / "run-1"))
    ended = chaos("trend", "--rebuild")
    assert (ended.code, ended.err) == (0, "301 runs are in the store; 1 were added\n")
    shutil.rmtree(stored / "run-1")
    assert chaos("trend", "--rebuild").err == "301 runs are in the store; 0 were added\n"


def test_an_empty_directory_has_no_trend(chaos: Callable[..., Ended], reports: Path) -> None:
    reports.mkdir()
    assert chaos("trend").out == "there are no runs in reports\n"
