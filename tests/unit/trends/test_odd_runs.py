"""Runs, rows and directories that are not as they should be: each is told, and hides no other run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SystemClock
from chaos.cli.paths import run_names
from chaos.trends.annotations import github
from chaos.trends.gate import gate
from chaos.trends.openmetrics import openmetrics
from chaos.trends.runs import read_runs, renew_run
from chaos.trends.series import series_of, stale
from chaos.trends.store import FILE, changing
from chaos.trends.trend import trends
from chaos.trends.trend_text import as_csv
from tests.kit.refused import refuse
from tests.kit.runs.many_runs import a_row, night
from tests.unit.trends.stored import finished, put, reports, stored

__all__ = ["reports"]


@pytest.mark.parametrize(
    "odd",
    [
        {"checks": [{"order": 0, "where": 5}]},
        {"checks": [{"order": 0, "where": ["scenario.yaml:\u00b2"]}]},
        {"plan": {"faults": [{"line": "x"}], "finding": "F-1", "failing": {"a": 1}}, "simulated": [5, {}]},
        {"made": {"started": "0001-01-01T00:00:00+23:59"}},
        {"made": {"started": "2026-01-01T00:00:00", "seconds": 1e300}},
        {"scenario": "\ud800", "recovery": {"phases": {"\ud800": 1e308}}},
    ],
)
def test_one_odd_result_keeps_no_other_run_from_being_read(reports: Path, odd: dict[str, Any]) -> None:
    put(reports, a_row())
    (reports / "odd").mkdir()
    (reports / "odd" / "result.json").write_text(json.dumps({"schema_version": 1, "verdict": "fail", **odd}))
    rows = stored(reports)
    assert {row.run for row in rows} == {"odd", a_row().run}
    assert gate(rows).cells and openmetrics(rows) and github(rows, reports) and as_csv(trends(rows))


def test_texts_of_a_run_are_on_one_line_and_move_no_cursor(reports: Path) -> None:
    text = "a\n::error::b\t\x1b[2J\r"
    (reports / "run-1").mkdir()
    result = {"schema_version": 1, "verdict": "fail", "scenario": text, "headline": {"text": text, "id": text}}
    (reports / "run-1" / "result.json").write_text(json.dumps(result))
    put(reports, a_row(1, scenario=text, phases={text: 1.0}))
    for row in stored(reports):
        texts = [row.scenario, row.headline, row.headline_id, *(phase.name for phase in row.phases)]
        assert [own for own in texts if own and own != "a ::error::b \ufffd[2J\ufffd"] == []


def test_a_time_without_a_zone_is_that_of_utc_and_others_are_brought_there(reports: Path) -> None:
    for name, started in (("zone", "2026-01-01T03:00:00+02:00"), ("none", "2026-01-01T01:00:00")):
        (reports / name).mkdir()
        made = {"schema_version": 1, "verdict": "pass", "made": {"started": started}}
        (reports / name / "result.json").write_text(json.dumps(made))
    assert {row.started for row in stored(reports)} == {"2026-01-01T01:00:00+00:00"}


def test_rows_that_no_run_has_are_told(reports: Path) -> None:
    put(reports, a_row(0), a_row(1), a_row(2))
    with changing(reports / FILE) as connection:
        connection.execute("UPDATE run SET seconds = 9e999 WHERE run = ?", (a_row(1).run,))
        connection.execute("UPDATE run SET ranks = 1.5 WHERE run = ?", (a_row(2).run,))
    runs = read_runs(reports)
    assert runs.rows == (a_row(0),)
    assert "2 rows hold what no run has: they are left out" in runs.notes[0]


def test_text_in_no_encoding_is_damage_that_is_repaired(reports: Path) -> None:
    put(reports, *(a_row(number) for number in range(3)))
    with changing(reports / FILE) as connection:
        connection.execute("UPDATE run SET headline = CAST(x'ff' AS TEXT) WHERE run = ?", (a_row(1).run,))
    runs = read_runs(reports)
    assert "was damaged (Could not decode to UTF-8" in runs.notes[0]
    assert set(runs.rows) == {a_row(0), a_row(2)}


def test_a_directory_that_may_not_be_looked_into_is_told_and_hides_no_other_run(
    reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(reports, "run-1")
    refuse(monkeypatch, finished(reports, "run-2"))
    runs = read_runs(reports)
    assert [row.run for row in runs.rows] == ["run-1"]
    assert "run-2/result.json: cannot be read: Permission denied" in runs.notes[0]
    assert run_names(reports) == ["run-1"]


def test_the_record_of_a_soak_may_hold_any_text(reports: Path) -> None:
    put(reports, a_row())
    (reports / "soak.jsonl").write_text('{"run": "\\ud800"}\n')
    assert stored(reports) == [a_row()]


@pytest.mark.parametrize("name", ["a-copy", "z-copy"])
def test_a_copy_of_a_run_does_not_replace_its_row(reports: Path, name: str) -> None:
    path = finished(reports)
    copy = shutil.copytree(path, reports / name)
    result = json.loads((copy / "result.json").read_text())
    (copy / "result.json").write_text(json.dumps({**result, "verdict": "unknown"}))
    for again in (False, True):
        assert [(row.run, row.verdict) for row in read_runs(reports, again=again).rows] == [("run-1", "pass")]
    assert renew_run(reports, copy) == []
    assert [row.verdict for row in stored(reports)] == ["pass"]


def test_a_run_that_was_moved_keeps_its_row_and_gets_one_where_it_has_none(reports: Path) -> None:
    finished(reports).rename(reports / "moved")
    assert [row.run for row in stored(reports)] == ["run-1"]
    assert [row.run for row in read_runs(reports, again=True).rows] == ["run-1"]


class OnNight9(SystemClock):
    """The clock of a machine on the morning after night 8."""

    def wall(self) -> int:
        return int(night(9).timestamp() * 1e9)


def test_a_run_that_began_in_the_future_is_told_and_counts_as_the_oldest(reports: Path) -> None:
    put(reports, *(a_row(number) for number in range(9)), a_row(4000, "uce-repair"))
    runs = read_runs(reports, clock=OnNight9())
    assert (runs.rows[0].run, runs.rows[0].started) == (a_row(4000, "uce-repair").run, "")
    assert runs.rows[1:] == tuple(a_row(number) for number in range(9))
    assert "began in the future" in runs.notes[0] and runs.rows[0].run in runs.notes[0]
    assert stale(series_of(runs.rows)) == []


@pytest.mark.parametrize(
    ("plan", "failed", "finding"),
    [
        ({"finding": "F-1", "failing": ["loss"]}, "loss", "always"),
        ({"finding": "F-1", "failing": ["loss"], "finding_always": False}, "loss", "sometimes"),
        ({"finding": "F-1", "failing": ["loss"]}, "resume", "beyond"),
        ({"finding": "F-1", "failing": ["loss"], "finding_sdk": "standin"}, "loss", ""),
        ({}, "loss", ""),
    ],
)
def test_a_row_says_whether_its_known_finding_explains_the_fail(
    reports: Path, plan: dict[str, Any], failed: str, finding: str
) -> None:
    checks = [{"name": failed, "verdict": "fail"}, {"name": "run", "verdict": "pass"}]
    (reports / "run-1").mkdir()
    result = {"schema_version": 1, "verdict": "fail", "plan": plan, "checks": checks}
    (reports / "run-1" / "result.json").write_text(json.dumps(result))
    (row,) = stored(reports)
    assert (row.finding, row.known) == (finding, finding in ("always", "sometimes"))
