"""All runs of a reports directory, read from the store and the result.json files without writing anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.report.result_file import has_result
from chaos.trends.finished import finished, missing, soak_runs
from chaos.trends.migration import FIRST_OF_FINDING, renewed
from chaos.trends.repair import salvage
from chaos.trends.row import RunRow
from chaos.trends.store import FILE, StoreDamaged, StoreUnusable, get_rows, looking, names_of, version_of

_AHEAD = timedelta(days=1)
"""How far a run may begin in the future: clocks of machines differ."""


@dataclass(frozen=True)
class Runs:
    """All rows of a reports directory, the oldest first. ``notes`` says in sentences what was repaired or left out.

    ``written``: the store has all of these rows now, ``added`` of them are new.
    """

    rows: tuple[RunRow, ...]
    notes: tuple[str, ...] = ()
    added: int = 0
    written: bool = True


def look_at_runs(
    reports: Path,
    *,
    again: bool = False,
    directories: Iterable[Path] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Runs:
    """Return all runs of ``reports`` as :func:`read_runs` does, and write nothing, not even a lock file.

    ``directories`` are the runs whose result.json is read, by default all of ``reports``. Raises StoreUnusable.
    """
    soaked = soak_runs(reports)
    try:
        kept, known, notes = _stored(reports)
        run_dirs = finished(reports) if directories is None else filter(has_result, directories)
        rows, skipped = missing(run_dirs, set() if again else known, soaked)
    except OSError as error:
        raise StoreUnusable(str(error)) from error
    merged = {row.run: row for row in (*kept, *rows)}
    marked = [replace(row, soak=row.soak or row.run in soaked) for row in merged.values()]
    every = sorted(marked, key=lambda row: (row.started, row.run))
    return in_order(Runs(tuple(every), (*notes, *skipped), written=False), clock)


def _stored(reports: Path) -> tuple[list[RunRow], set[str], list[str]]:
    """Return the rows of the store, the names of all its runs, and notes; nothing where there is no store."""
    path = reports / FILE
    if not os.path.lexists(path):
        return [], set(), [f"there is no {path}: only runs with a result.json are read"]
    try:
        with looking(path) as connection:
            kept, known = get_rows(connection), names_of(connection)
            version = version_of(connection)
    except StoreDamaged as error:
        kept = salvage(path)
        return kept, {row.run for row in kept}, [f"{path}: is damaged ({error}); {len(kept)} rows of it can be read"]
    notes = strange_rows(path, len(known) - len(kept))
    if version < FIRST_OF_FINDING:
        changed, lost = renewed(kept, reports)
        kept, notes = list({row.run: row for row in (*kept, *changed)}.values()), [*notes, *lost]
    return kept, known, notes


def strange_rows(path: Path, count: int) -> list[str]:
    """Return a note about rows that were left out, if there are any."""
    return [f"{path}: {count} rows hold what no run has: they are left out"] if count else []


def new_store(path: Path, count: int) -> list[str]:
    """Return a note about a store that begins with runs of an older directory, if there are any."""
    number = "1 run" if count == 1 else f"{count} runs"
    return [f"{path}: is new, and begins with {number}, made of result.json files"] if count else []


def in_order(runs: Runs, clock: Clock) -> Runs:
    """Return the runs with those first that began in the future, and with a note about them."""
    rows, ahead = _dated(list(runs.rows), datetime.fromtimestamp(clock.wall() / 1e9, timezone.utc))
    return replace(runs, rows=tuple(rows), notes=(*runs.notes, *ahead))


def _dated(rows: list[RunRow], now: datetime) -> tuple[list[RunRow], list[str]]:
    """Return the rows, those first that began in the future, without that time; and a sentence about them."""
    ahead = [row for row in rows if row.begun is not None and row.begun > now + _AHEAD]
    if not ahead:
        return rows, []
    more = f" and {len(ahead) - 1} more" if len(ahead) > 1 else ""
    note = f"counted as the oldest, since the clock says that it began in the future: {ahead[0].run}{more}"
    others = [row for row in rows if row not in ahead]
    return [*(replace(row, started="", ended="") for row in ahead), *others], [note]
