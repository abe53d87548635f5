"""The store of runs: one row a run, several writers at once, and nothing lost when it is old, damaged or newer."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.report.analyze import analyze
from chaos.trends.repair import salvage
from chaos.trends.runs import mark_soak_runs, read_runs, record_run
from chaos.trends.store import FILE, StoreUnusable
from tests.kit.runs.good_run import good_run
from tests.kit.runs.many_runs import a_row
from tests.unit.trends.stored import finished, put, reports, stored

__all__ = ["reports"]


def test_a_row_says_what_the_result_says(reports: Path) -> None:
    facts: dict[str, Any] = {
        "platform": "local",
        "sdk": "standin",
        "host": {"name": "runner"},
        "source": "/home/me/scenarios/kill-rank.yaml",
        "ci": {"job": "https://ci/7", "revision": "abc"},
    }
    path = finished(reports, **facts)
    result = json.loads((path / "result.json").read_text())
    assert record_run(reports, path) == []
    (row,) = stored(reports)
    assert (row.run, row.scenario, row.verdict) == ("run-1", result["scenario"], "pass")
    assert {phase.name: phase.seconds for phase in row.phases} == result["recovery"]["phases"]
    assert {phase.name: phase.budget for phase in row.phases} == result["plan"]["budget"]["phases"]
    assert (row.total, row.mechanism) == (result["recovery"]["total"], result["recovery"]["mechanism"])
    assert (row.platform, row.sdk, row.host, row.ci, row.revision) == (
        "local", "standin", "runner", "https://ci/7", "abc",
    )  # fmt: skip
    assert row.started == result["made"]["started"]
    assert row.seconds == pytest.approx(26.0)
    assert row.working == pytest.approx(25.1)  # without the 0.9 s up to the first start of its job
    assert row.file.endswith("kill-rank.yaml")


def test_a_row_has_the_headline_and_the_line_of_the_statement_that_decides(reports: Path) -> None:
    path = finished(reports)
    result = json.loads((path / "result.json").read_text())
    result |= {"verdict": "fail", "headline": {"id": "resume-1", "check": "resume", "text": "resume: moments"}}
    first, second, *_ = result["checks"]
    first |= {"order": 1, "where": ["scenario.yaml:3"]}
    second |= {"order": 0, "where": ["history/rank_0.jsonl:8", "scenario.yaml:12"]}
    (path / "result.json").write_text(json.dumps(result))
    (row,) = stored(reports)
    assert (row.headline, row.headline_id, row.line) == ("resume: moments", "resume-1", 12)


def test_a_row_outlives_the_directory_of_its_run(reports: Path) -> None:
    record_run(reports, path := finished(reports))
    (before,) = stored(reports)
    shutil.rmtree(path)
    assert stored(reports) == [before]
    assert list(read_runs(reports, again=True).rows) == [before]


def test_a_soak_marks_its_runs_and_a_rebuild_keeps_the_mark(reports: Path) -> None:
    record_run(reports, finished(reports))
    assert mark_soak_runs(reports, ["run-1"]) == []
    assert [row.soak for row in stored(reports)] == [True]
    assert [row.soak for row in read_runs(reports, again=True).rows] == [True]


def test_the_record_of_a_soak_marks_the_runs_of_a_directory_without_a_store(reports: Path) -> None:
    finished(reports)
    (reports / "soak.jsonl").write_text('{"run": "run-1"}\n{"torn')
    assert [row.soak for row in stored(reports)] == [True]


def test_a_directory_without_a_store_is_read_from_its_results(reports: Path) -> None:
    for number in range(3):
        finished(reports, f"run-{number}")
    runs = read_runs(reports)
    assert (len(runs.rows), runs.added) == (3, 3)
    assert runs.notes == (f"{reports / FILE}: is new, and begins with 3 runs, made of result.json files",)
    assert read_runs(reports).notes == ()


def test_the_first_run_after_an_update_brings_the_older_ones_with_it(reports: Path) -> None:
    older, newer = finished(reports, "run-0"), finished(reports, "run-1")
    (note,) = record_run(reports, newer)
    assert "is new, and begins with 1 run," in note
    shutil.rmtree(older)
    assert {row.run for row in stored(reports)} == {"run-0", "run-1"}


def test_several_writers_at_once_lose_nothing(reports: Path) -> None:
    def write(writer: int) -> None:
        for number in range(20):
            put(reports, a_row(number, f"scenario-{writer}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(stored(reports)) == 160


def test_a_reader_finds_a_written_row_whole(reports: Path) -> None:
    row = a_row(1, cell="victim=1", rollback=None, load=None, line=None)
    put(reports, row)
    assert stored(reports) == [row]


def test_a_run_that_is_judged_again_has_one_row(reports: Path) -> None:
    put(reports, a_row(), replace(a_row(), verdict="fail", headline="Resume: the moments were not restored"))
    assert [(row.verdict, row.headline[:7]) for row in stored(reports)] == [("fail", "Resume:")]


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3 // 4096 * 4096])


def overwritten(path: Path) -> None:
    path.write_bytes(b"no database at all " * 1000)


def garbled(path: Path) -> None:
    content = path.read_bytes()
    begin = len(content) // 2 // 4096 * 4096
    path.write_bytes(content[:begin] + b"\xff" * 4096 + content[begin + 4096 :])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [cut_off, overwritten, garbled, emptied])
def test_a_damaged_store_is_told_kept_aside_and_made_again(reports: Path, spoil: Callable[[Path], None]) -> None:
    put(reports, *(a_row(number) for number in range(400)))
    record_run(reports, finished(reports))
    spoil(reports / FILE)
    damaged = (reports / FILE).read_bytes()
    runs = read_runs(reports)
    (note,) = runs.notes
    assert "runs.sqlite: was damaged (" in note and "kept as runs.sqlite.damaged-1" in note
    assert (reports / "runs.sqlite.damaged-1").read_bytes() == damaged
    assert "run-1" in {row.run for row in runs.rows}
    assert read_runs(reports).notes == ()


def test_what_can_be_read_of_a_store_that_was_cut_off_is_kept(reports: Path) -> None:
    put(reports, *(a_row(number) for number in range(400)))
    cut_off(reports / FILE)
    rows = read_runs(reports).rows
    assert len(rows) > 100
    assert set(rows) & {a_row(number) for number in range(400)}


@pytest.mark.parametrize("length", [0, 1, 16, 99, 100, 511, 4095, 4096, 4097, 8192, 20_000, -4096, -1])
def test_a_store_that_was_cut_off_anywhere_loses_no_run_whose_files_are_there(reports: Path, length: int) -> None:
    put(reports, *(a_row(number) for number in range(400)))
    record_run(reports, finished(reports))
    whole = (reports / FILE).read_bytes()
    (reports / FILE).write_bytes(whole[:length])
    newer = finished(reports, "run-2")
    (note,) = record_run(reports, newer)
    assert "was damaged (" in note and "kept as runs.sqlite.damaged-1" in note
    assert (reports / "runs.sqlite.damaged-1").read_bytes() == whole[:length]
    runs = read_runs(reports)
    assert runs.notes == () and {"run-1", "run-2"} <= {row.run for row in runs.rows}


def test_a_store_that_two_processes_make_at_once_is_made_once(reports: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: put(reports, a_row(number)), range(32)))
    assert len(stored(reports)) == 32
    assert sorted(path.name for path in reports.iterdir()) == [".runs.lock", FILE]


def test_a_store_that_two_processes_repair_at_once_is_repaired_once(reports: Path) -> None:
    record_run(reports, finished(reports))
    (reports / FILE).write_bytes(b"")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read_runs(reports), range(8)))
    assert sum(len(runs.notes) for runs in found) == 1
    assert {len(runs.rows) for runs in found} == {1}
    assert len(list(reports.glob("*.damaged-*"))) == 1


def test_a_run_repairs_a_damaged_store_too(reports: Path) -> None:
    path = finished(reports)
    (reports / FILE).write_bytes(b"x" * 5000)
    (note,) = record_run(reports, path)
    assert "was damaged" in note
    assert [row.run for row in stored(reports)] == ["run-1"]


def test_a_database_with_other_tables_is_no_store(reports: Path) -> None:
    with sqlite3.connect(reports / FILE) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    (note,) = record_run(reports, finished(reports))
    assert "it holds other tables" in note


def test_a_newer_store_is_told_and_left_alone(reports: Path) -> None:
    path = finished(reports)
    with sqlite3.connect(reports / FILE) as connection:
        connection.execute("CREATE TABLE newer (x)")
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    before = (reports / FILE).read_bytes()
    (warning,) = record_run(reports, path)
    assert "runs.sqlite: was written by a newer chaos (schema 7, this one knows 3)" in warning
    with pytest.raises(StoreUnusable, match="newer chaos"):
        read_runs(reports)
    assert (reports / FILE).read_bytes() == before


def made_by_version_1(reports: Path) -> Path:
    put(reports, replace(a_row(), verdict="fail", headline="Resume: no"))
    path = reports / FILE
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE run DROP COLUMN headline_id")
        connection.execute("ALTER TABLE run DROP COLUMN finding")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    return path


def test_a_store_of_version_1_gets_the_new_column_and_keeps_its_rows(reports: Path) -> None:
    made_by_version_1(reports)
    (row,) = stored(reports)
    assert (row.headline, row.headline_id) == ("Resume: no", "")
    put(reports, replace(row, run="another", headline_id="resume-1"))
    assert {row.headline_id for row in stored(reports)} == {"", "resume-1"}


def test_a_damaged_store_of_version_1_keeps_its_rows(reports: Path) -> None:
    path = made_by_version_1(reports)
    assert [row.headline for row in salvage(path)] == ["Resume: no"]


def test_the_headline_of_a_failure_and_its_id_are_stored(reports: Path) -> None:
    run = good_run()
    del run.saved[1]
    result = analyze(run.write(reports / "run-1"))
    assert record_run(reports, reports / "run-1") == [] and result.headline is not None
    (row,) = stored(reports)
    assert (row.headline, row.headline_id) == (result.headline.text, result.headline.id)


def test_a_newer_result_is_named_and_left_out(reports: Path) -> None:
    finished(reports, "run-1")
    newer = finished(reports, "run-2")
    result = json.loads((newer / "result.json").read_text())
    (newer / "result.json").write_text(json.dumps({**result, "schema_version": 2}))
    runs = read_runs(reports)
    assert [row.run for row in runs.rows] == ["run-1"]
    note, _ = runs.notes
    assert "run-2/result.json: has schema_version 2, and this version of chaos reads 1: it is left out" in note
    assert json.loads((newer / "result.json").read_text())["schema_version"] == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1}', "nonsense", '{"schema_version": "1"}'])
def test_a_result_that_is_none_is_named_and_left_out(reports: Path, text: str) -> None:
    (reports / "run-1").mkdir()
    (reports / "run-1" / "result.json").write_text(text)
    runs = read_runs(reports)
    assert runs.rows == () and "run-1/result.json" in runs.notes[0]


def test_values_of_other_types_make_no_row_unreadable(reports: Path) -> None:
    result: dict[str, Any] = {"schema_version": 1, "verdict": "fail"}
    result |= {"scenario": ["x"], "cell": 3, "reason": "r" * 9999, "plan": [], "recovery": 1, "versions": "v"}
    result |= {"made": {"started": 5, "seconds": -1, "inputs": [], "machine": 7}, "checks": [1, {"order": 0}]}
    (reports / "run-1").mkdir()
    (reports / "run-1" / "result.json").write_text(json.dumps(result))
    (row,) = stored(reports)
    assert (row.run, row.verdict, row.scenario, len(row.headline)) == ("run-1", "fail", "", 2000)


def test_a_store_that_cannot_be_written_is_a_warning_with_the_reason(reports: Path) -> None:
    path = finished(reports)
    (reports / FILE).mkdir()
    (warning,) = record_run(reports, path)
    assert "the run is not in the store of runs, the other reports are complete" in warning
    assert "unable to open database file" in warning


def test_a_link_in_the_place_of_the_store_is_not_followed(reports: Path, tmp_path: Path) -> None:
    (reports / FILE).symlink_to(tmp_path / "elsewhere")
    (warning,) = record_run(reports, finished(reports))
    assert "is not a plain file" in warning
    assert not (tmp_path / "elsewhere").exists()
