"""The rows of a reports directory: recorded after each run, completed from result.json files, repaired when damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.file_lock import FileLock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.report.result import FILE as RESULT
from chaos.store.json_lines import JsonLines
from chaos.trends.from_result import NoRow, row_of
from chaos.trends.repair import put_aside, salvage
from chaos.trends.row import RunRow
from chaos.trends.store import (
    FILE,
    StoreDamaged,
    StoreUnusable,
    changing,
    get_rows,
    is_empty,
    mark_soak,
    names_of,
    put_rows,
)

SOAK_FILE = "soak.jsonl"
_LOCK = ".runs.lock"
_LOCK_SECONDS = 60.0

T = TypeVar("T")


@dataclass(frozen=True)
class Runs:
    """All rows of a reports directory, the oldest first. ``notes`` says in sentences what was repaired or left out."""

    rows: tuple[RunRow, ...]
    notes: tuple[str, ...] = ()
    added: int = 0


def record_run(reports: Path, run_dir: Path) -> list[str]:
    """Add a finished run to the store of ``reports``, and what an earlier version left beside it.

    Returns sentences for the user. Never raises for a store that cannot be written: the run's files hold all that the
    row says, and the next call of `chaos trend` adds it.
    """
    try:
        row = row_of(run_dir)
        notes: list[str] = []

        def add(connection: sqlite3.Connection) -> None:
            if is_empty(connection):
                rows, skipped = _missing(reports, set(), frozenset())
                put_rows(connection, rows)
                notes.extend(skipped)
            put_rows(connection, [row])

        return [*_with_store(reports, add)[1], *notes]
    except (StoreUnusable, NoRow, OSError, DeadlineExpired) as error:
        return [f"the run is not in the store of runs, the other reports are complete: {error}"]


def read_runs(reports: Path, *, again: bool = False) -> Runs:
    """Return all runs of ``reports``; runs with a result.json and without a row are added first.

    ``again`` reads every result.json anew. Rows of runs whose directory is gone stay. Raises StoreUnusable.
    """
    if not reports.is_dir():
        raise StoreUnusable(f"there is no directory {reports}: give another with --reports")
    soaked = _soak_runs(reports)

    def merge(connection: sqlite3.Connection) -> tuple[list[RunRow], list[str], int]:
        known = names_of(connection)
        rows, skipped = _missing(reports, set() if again else known, soaked)
        put_rows(connection, rows)
        mark_soak(connection, soaked)
        return get_rows(connection), skipped, len({row.run for row in rows} - known)

    try:
        (rows, skipped, added), notes = _with_store(reports, merge)
    except (OSError, DeadlineExpired) as error:
        raise StoreUnusable(str(error)) from error
    return Runs(tuple(rows), (*notes, *skipped), added)


def mark_soak_runs(reports: Path, runs: Iterable[str]) -> list[str]:
    """Mark runs as those of a soak. Returns sentences for the user, as :func:`record_run` does."""
    try:
        return _with_store(reports, lambda connection: mark_soak(connection, runs))[1]
    except (StoreUnusable, OSError, DeadlineExpired) as error:
        return [f"the store of runs does not say that these are runs of a soak: {error}"]


def _with_store(reports: Path, act: Callable[[sqlite3.Connection], T]) -> tuple[T, list[str]]:
    """Return the outcome of ``act`` on the store, and notes of a repair.

    A damaged store is put aside once, and ``act`` is done on the new one.
    """
    path = reports / FILE
    try:
        with changing(path) as connection:
            return act(connection), []
    except StoreDamaged:
        notes = _repair(reports)
        try:
            with changing(path) as connection:
                return act(connection), notes
        except StoreDamaged as error:
            raise StoreUnusable(f"{path}: is damaged again ({error}): look after the disk") from error


def _repair(reports: Path, clock: Clock = SYSTEM_CLOCK) -> list[str]:
    """Replace a damaged store by one of its readable rows and of the result.json files."""
    path, lock = reports / FILE, reports / _LOCK
    with wait_for(f"lock {lock}", lambda: FileLock.try_acquire(lock), seconds=_LOCK_SECONDS, clock=clock):
        try:
            with changing(path):
                return []  # another process has repaired it meanwhile
        except StoreDamaged as error:
            why = str(error)
        aside = put_aside(path)
        rows, skipped = _missing(reports, set(), _soak_runs(reports))
        kept = salvage(aside)
        with changing(path) as connection:
            put_rows(connection, kept)
            put_rows(connection, rows)
    return [
        f"{path}: was damaged ({why}); it is kept as {aside.name}, and a new one has {len(kept)} rows of it and "
        f"{len(rows)} of the result.json files",
        *skipped,
    ]


def _missing(reports: Path, known: set[str], soaked: frozenset[str]) -> tuple[list[RunRow], list[str]]:
    """Return rows of the runs that are not known, and why others have none."""
    rows, skipped = [], []
    for run_dir in _finished(reports):
        if run_dir.name in known:
            continue
        try:
            row = row_of(run_dir, soak=run_dir.name in soaked)
        except NoRow as error:
            skipped.append(str(error))
            continue
        if row.run == run_dir.name or row.run not in known:
            rows.append(row)
    return rows, skipped


def _finished(reports: Path) -> Iterator[Path]:
    for path in sorted(reports.iterdir()):
        if path.is_dir() and not path.is_symlink() and (path / RESULT).is_file():
            yield path


def _soak_runs(reports: Path) -> frozenset[str]:
    """Return the names of runs that the record of soaks names; none where it cannot be read."""
    try:
        records = JsonLines(reports / SOAK_FILE).read()
    except (OSError, ValueError):
        return frozenset()
    return frozenset(name for record in records if isinstance(made := record.get("run"), str) for name in made.split())
