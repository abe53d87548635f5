"""The rows of a reports directory: recorded after each run, completed from result.json files, repaired when damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeVar

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.file_lock import FileLock
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.report.result import has_result
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
_AHEAD = timedelta(days=1)
"""How far a run may begin in the future: clocks of machines differ."""

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


def renew_run(reports: Path, run_dir: Path) -> list[str]:
    """Renew the row of a run that was judged again, where there is a store. A copy of a run has no row of its own.

    Returns what a user must be told, as :func:`record_run` does.
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
    counts as the oldest: it would stand for the newest run of its cell for years. Raises StoreUnusable.
    """
    if not reports.is_dir():
        raise StoreUnusable(f"there is no directory {reports}: give another with --reports")
    soaked = _soak_runs(reports)

    def merge(connection: sqlite3.Connection) -> tuple[list[RunRow], list[str], int]:
        known = names_of(connection)
        rows, skipped = _missing(reports, set() if again else known, soaked)
        put_rows(connection, rows)
        mark_soak(connection, soaked)
        kept = get_rows(connection)
        if strange := len(names_of(connection)) - len(kept):
            skipped.append(f"{reports / FILE}: {strange} rows hold what no run has: they are left out")
        return kept, skipped, len({row.run for row in rows} - known)

    try:
        (rows, skipped, added), notes = _with_store(reports, merge)
    except (OSError, DeadlineExpired) as error:
        raise StoreUnusable(str(error)) from error
    rows, ahead = _dated(rows, datetime.fromtimestamp(clock.wall() / 1e9, timezone.utc))
    return Runs(tuple(rows), (*notes, *skipped, *ahead), added)


def _dated(rows: list[RunRow], now: datetime) -> tuple[list[RunRow], list[str]]:
    """Return the rows, those first that began in the future, without that time; and a sentence about them."""
    ahead = [row for row in rows if row.begun is not None and row.begun > now + _AHEAD]
    if not ahead:
        return rows, []
    more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    note = f"counted as the oldest, since the clock says that it began in the future: {ahead[0].run}{more}"
    others = [row for row in rows if row not in ahead]
    return [*(replace(row, started="", ended="") for row in ahead), *others], [note]


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
                return act(connection), []
        except StoreDamaged as error:
            why = str(error)
        # Here the error is gone, which held a statement and so the lock of the damaged store.
        notes = _repair(reports, why)
        try:
            with changing(path) as connection:
                return act(connection), notes
        except StoreDamaged as error:
            raise StoreUnusable(f"{path}: is damaged again ({error}): look after the disk") from error


def _repair(reports: Path, why: str) -> list[str]:
    """Replace a damaged store by one of its readable rows and of the result.json files."""
    path = reports / FILE
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
    finished = list(_finished(reports))
    taken = known | {run_dir.name for run_dir in finished}
    for run_dir in finished:
        if run_dir.name in known:
            continue
        try:
            row = row_of(run_dir, soak=run_dir.name in soaked)
        except NoRow as error:
            skipped.append(str(error))
            continue
        if row.run == run_dir.name or row.run not in taken:  # else a copy of a run
            rows.append(row)
            taken.add(row.run)
    return rows, skipped


def _finished(reports: Path) -> Iterator[Path]:
    for path in sorted(reports.iterdir()):
        if has_result(path):
            yield path


def _soak_runs(reports: Path) -> frozenset[str]:
    """Return the names of runs that the record of soaks names; none where it cannot be read."""
    try:
        records = JsonLines(reports / SOAK_FILE).read()
    except (OSError, ValueError):
        return frozenset()
    return frozenset(name for record in records if isinstance(made := record.get("run"), str) for name in made.split())
