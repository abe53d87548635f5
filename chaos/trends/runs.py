"""The rows of a reports directory: recorded after each run, completed from result.json files, repaired when damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.file_lock import FileLock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.trends.finished import finished, missing, soak_runs
from chaos.trends.from_result import NoRow, row_of
from chaos.trends.migration import renewed
from chaos.trends.reading import Runs, in_order, look_at_runs, new_store, strange_rows
from chaos.trends.repair import put_aside, salvage
from chaos.trends.store import (
    FILE,
    SCHEMA,
    StoreDamaged,
    StoreNotWritable,
    StoreUnusable,
    changing,
    get_rows,
    is_empty,
    mark_soak,
    names_of,
    put_rows,
    set_version,
    version_of,
)

_LOCK = ".runs.lock"
_LOCK_SECONDS = 60.0

T = TypeVar("T")


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
                rows, skipped = missing(finished(reports), set(), frozenset())
                put_rows(connection, rows)
                earlier = sum(other.run != row.run for other in rows)
                notes.extend([*skipped, *new_store(reports / FILE, earlier)])
            put_rows(connection, [row])

        return [*_with_store(reports, add)[1], *notes]
    except (StoreUnusable, NoRow, OSError, DeadlineExpired) as error:
        return [f"the run is not in the store of runs, the other reports are complete: {error}"]


def renew_run(reports: Path, run_dir: Path) -> list[str]:
    """Renew the row of a run that was judged again, where there is a store. A copy of a run has no row of its own.

    Returns the messages for the user, as :func:`record_run` does.
    """
    try:
        if not (reports / FILE).exists() or row_of(run_dir).run != run_dir.name:
            return []
    except (NoRow, OSError):
        return []
    return record_run(reports, run_dir)


def read_runs(reports: Path, *, again: bool = False, clock: Clock = SYSTEM_CLOCK) -> Runs:
    """Return all runs of ``reports``; runs with a result.json and without a row are added first.

    ``again`` reads every result.json anew. Rows of runs whose directory is gone stay. A run that began in the future
    counts as the oldest: it would stand for the newest run of its cell for years. Where nothing can be written, the
    same runs are read, and a note says so. Raises StoreUnusable.
    """
    if not reports.is_dir():
        raise StoreUnusable(f"there is no directory {reports}: give another with --reports")
    try:
        return in_order(_added(reports, again=again), clock)
    except DeadlineExpired as error:
        raise StoreUnusable(str(error)) from error
    except (StoreNotWritable, OSError) as error:
        reason = error
    try:
        runs = look_at_runs(reports, again=again, clock=clock)
    except StoreUnusable:
        raise StoreUnusable(str(reason)) from reason
    note = f"the store of runs cannot be written, and nothing of this call is kept in it: {reason}"
    return replace(runs, notes=(note, *runs.notes))


def _added(reports: Path, *, again: bool) -> Runs:
    """Add the missing runs to the store, and return all of it."""
    soaked = soak_runs(reports)

    def merge(connection: sqlite3.Connection) -> Runs:
        known = names_of(connection)
        rows, skipped = missing(finished(reports), set() if again else known, soaked)
        put_rows(connection, rows)
        mark_soak(connection, soaked)
        kept = get_rows(connection)
        strange = strange_rows(reports / FILE, len(names_of(connection)) - len(kept))
        new = () if known else new_store(reports / FILE, len(rows))
        return Runs(tuple(kept), (*skipped, *strange, *new), len({row.run for row in rows} - known))

    runs, notes = _with_store(reports, merge)
    return replace(runs, notes=(*notes, *runs.notes))


def mark_soak_runs(reports: Path, runs: Iterable[str]) -> list[str]:
    """Mark runs as those of a soak. Returns sentences for the user, as :func:`record_run` does."""
    try:
        return _with_store(reports, lambda connection: mark_soak(connection, runs))[1]
    except (StoreUnusable, OSError, DeadlineExpired) as error:
        return [f"the store of runs does not say that these are runs of a soak: {error}"]


def _with_store(reports: Path, act: Callable[[sqlite3.Connection], T]) -> tuple[T, list[str]]:
    """Return the outcome of ``act`` on the store, and notes of a repair.

    A damaged store is put aside once, and ``act`` is done on the new one. Other processes wait meanwhile: between the
    two stores there is no file, and what they wrote to the damaged one would be lost.
    """
    path, lock = reports / FILE, reports / _LOCK
    with wait_for(f"lock {lock}", lambda: FileLock.try_acquire(lock), seconds=_LOCK_SECONDS, clock=SYSTEM_CLOCK):
        try:
            with changing(path) as connection:
                notes = _migrated(connection, reports)
                return act(connection), notes
        except StoreDamaged as error:
            why = str(error)
        # Here the error is gone, which held a statement and so the lock of the damaged store.
        notes = _repair(reports, why)
        try:
            with changing(path) as connection:
                return act(connection), notes
        except StoreDamaged as error:
            raise StoreUnusable(f"{path}: is damaged again ({error}): look after the disk") from error


def _migrated(connection: sqlite3.Connection, reports: Path) -> list[str]:
    """Give rows of an earlier version their present meaning, once, and return notes."""
    if version_of(connection) >= SCHEMA:
        return []
    changed, notes = renewed(get_rows(connection), reports)
    put_rows(connection, changed)
    set_version(connection)
    return notes


def _repair(reports: Path, why: str) -> list[str]:
    """Replace a damaged store by one of its readable rows and of the result.json files."""
    path = reports / FILE
    aside = put_aside(path)
    rows, skipped = missing(finished(reports), set(), soak_runs(reports))
    kept = salvage(aside)
    with changing(path) as connection:
        put_rows(connection, kept)
        put_rows(connection, rows)
    return [
        f"{path}: was damaged ({why}); it is kept as {aside.name}, and a new one has {len(kept)} rows of it and "
        f"{len(rows)} of the result.json files",
        *skipped,
    ]
