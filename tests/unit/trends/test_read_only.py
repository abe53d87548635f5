"""Where nothing can be written the store is read all the same, it is said, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.trends.reading import look_at_runs
from chaos.trends.runs import read_runs, record_run
from chaos.trends.store import FILE, StoreUnusable
from tests.kit.read_only import read_only
from tests.kit.runs.many_runs import a_row, nights
from tests.unit.cli.kit import Ended
from tests.unit.trends.stored import finished, put


@pytest.fixture
def directory(reports: Path) -> Path:
    reports.mkdir(exist_ok=True)
    return reports


def test_a_store_that_cannot_be_written_is_read_with_the_runs_beside_it(directory: Path) -> None:
    put(directory, a_row())
    finished(directory)
    (directory / "soak.jsonl").write_text('{"run": "run-1"}\n')
    before = sorted(path.name for path in directory.iterdir())
    with read_only(directory):
        runs = read_runs(directory)
    assert [(row.run, row.soak) for row in runs.rows] == [(a_row().run, False), ("run-1", True)]
    assert (runs.written, runs.added) == (False, 0)
    (note,) = runs.notes
    assert note.startswith("the store of runs cannot be written, and nothing of this call is kept in it: ")
    assert "Permission denied" in note
    assert sorted(path.name for path in directory.iterdir()) == before
    assert read_runs(directory).rows == runs.rows, "a store that can be written gets the same rows"


WRITE_AND_BE_KILLED = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE run SET scenario = 'half-written'")
connection.execute("CREATE TABLE much (words)")
for _ in range(1000):
    connection.execute("INSERT INTO much VALUES (?)", ("x" * 1000,))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.processes
def test_a_write_that_its_killed_process_left_unfinished_is_passed_over_and_left_to_the_next_writer(
    directory: Path,
) -> None:
    put(directory, *(a_row(number) for number in range(50)))
    before = look_at_runs(directory)
    subprocess.run([sys.executable, "-c", WRITE_AND_BE_KILLED, str(directory / FILE)], check=False)
    journal = directory / f"{FILE}-journal"
    files = {path: path.read_bytes() for path in (directory / FILE, journal)}
    assert b"half-written" in files[directory / FILE], "the unfinished write has reached the file"
    assert look_at_runs(directory) == before
    assert {path: path.read_bytes() for path in directory.iterdir()} == files
    put(directory, a_row(50))
    assert [row.scenario for row in look_at_runs(directory).rows].count("half-written") == 0
    assert not journal.exists()


def test_a_directory_without_a_store_is_read_where_none_can_be_made(directory: Path) -> None:
    finished(directory)
    with read_only(directory):
        runs = read_runs(directory, again=True)
    assert [row.run for row in runs.rows] == ["run-1"] and "cannot be written" in runs.notes[0]
    assert runs.notes[1:] == (f"there is no {directory / FILE}: only runs with a result.json are read",)
    assert sorted(path.name for path in directory.iterdir()) == ["run-1"]


def test_a_read_only_store_that_is_damaged_loses_no_row_that_can_be_read(directory: Path) -> None:
    put(directory, *(a_row(number) for number in range(400)))
    finished(directory)
    whole = (directory / FILE).read_bytes()
    (directory / FILE).write_bytes(whole[: len(whole) * 2 // 3 // 4096 * 4096])
    with read_only(directory):
        runs = read_runs(directory)
    assert len(runs.rows) > 100 and "run-1" in {row.run for row in runs.rows}
    assert "cannot be written" in runs.notes[0] and "runs.sqlite: is damaged (" in runs.notes[1]
    assert not list(directory.glob("*.damaged-*"))


def test_a_newer_store_is_not_read_in_part(directory: Path) -> None:
    finished(directory)
    put(directory, a_row())
    with sqlite3.connect(directory / FILE) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with read_only(directory), pytest.raises(StoreUnusable):
        read_runs(directory)
    with pytest.raises(StoreUnusable, match="newer chaos"):
        look_at_runs(directory)


def test_trend_and_gate_read_a_read_only_directory(chaos: Callable[..., Ended], directory: Path) -> None:
    put(directory, *nights(3, 40, noise=0.02))
    with read_only(directory):
        for command in (("gate",), ("trend",), ("trend", "--rebuild"), ("export", "--format", "openmetrics")):
            ended = chaos(*command)
            assert (ended.code, "kill-rank" in ended.out or "pass: nothing got worse" in ended.out) == (0, True)
            assert "chaos: the store of runs cannot be written" in ended.err and "in the store; " not in ended.err


def test_a_page_that_cannot_be_written_is_shown_by_the_server(chaos: Callable[..., Ended], directory: Path) -> None:
    finished(directory)
    with read_only(directory):
        ended = chaos("report", str(directory))
    assert ended.code == 3
    assert f"cannot be written to {directory}: Permission denied; `chaos serve` shows it" in ended.err


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without hard links."""

    def link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)


@pytest.mark.usefixtures("without_links")
def test_several_processes_make_one_store_where_there_are_no_hard_links(directory: Path) -> None:
    paths = [finished(directory, f"run-{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        notes = [note for notes in pool.map(lambda path: record_run(directory, path), paths) for note in notes]
    assert len(notes) <= 1 and all("is new, and begins with" in note for note in notes)
    for path in paths:
        shutil.rmtree(path)
    assert len(read_runs(directory).rows) == 4
    assert sorted(path.name for path in directory.iterdir()) == [".runs.lock", FILE]


def by_version_2(directory: Path) -> None:
    """A store whose rows do not say whether their finding explains the fail."""
    result = finished(directory) / "result.json"
    text = result.read_text().replace('"verdict": "pass"', '"verdict": "fail"')
    result.write_text(text.replace('"finding": null', '"finding": "F-1"'))
    old: dict[str, Any] = {"verdict": "fail", "finding": "always"}
    put(directory, replace(a_row(), **old), replace(a_row(1), **old), replace(a_row(2), run="run-1", **old))
    with sqlite3.connect(directory / FILE) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


@pytest.mark.parametrize("read", [read_runs, look_at_runs])
def test_rows_of_version_2_get_the_present_meaning_of_their_finding(
    directory: Path, read: Callable[[Path], Any]
) -> None:
    by_version_2(directory)
    runs = read(directory)
    assert {row.run: row.finding for row in runs.rows} == {
        a_row().run: "always", a_row(1).run: "always", "run-1": "beyond",
    }  # fmt: skip
    (note,) = runs.notes
    assert note == (
        f"stored by an earlier chaos, and without a result.json: {a_row().run} and 1 more: nothing tells whether the "
        "known finding explains all that failed, and it counts as explained"
    )
    assert bool(read(directory).notes) == (read is look_at_runs), "a store that can be written is migrated once"
