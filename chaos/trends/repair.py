"""A damaged store is put aside under another name, and what can be read of it goes into a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

from chaos.trends.row import PhaseTime, RunRow
from chaos.trends.store import row_from

_BESIDE = ("-journal", "-wal", "-shm")
"""Files of SQLite that belong to the store's file: beside another file they would spoil it."""


def put_aside(path: Path) -> Path:
    """Rename a damaged store, with the files that belong to it, and return its new path. Raises OSError."""
    aside = next(name for number in count(1) if not (name := path.with_name(f"{path.name}.damaged-{number}")).exists())
    path.rename(aside)
    for suffix in _BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside


def salvage(path: Path) -> list[RunRow]:
    """Return the rows that can still be read of a damaged store: from its beginning and from its end."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.execute("PRAGMA writable_schema = ON")  # else SQLite reads nothing of a file that is cut off
        phases: dict[str, dict[int, PhaseTime]] = {}
        for line in _lines(connection, "phase"):
            with suppress(TypeError, ValueError, KeyError):
                time = PhaseTime(str(line["name"]), _number(line["seconds"]), _number(line["budget"]))
                phases.setdefault(line["run"], {})[line["place"]] = time
        rows: dict[str, RunRow] = {}
        for line in _lines(connection, "run"):
            with suppress(ValueError, TypeError, KeyError):
                times = [phase for _, phase in sorted(phases.get(line["run"], {}).items())]
                if (row := row_from(line, times)) is not None:
                    rows[row.run] = row
        return list(rows.values())
    return []


def _lines(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a table by column, up to the first damage, from either end."""
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error):
            lines = connection.execute(f"SELECT * FROM {table} ORDER BY rowid {order}")
            names = [name for name, *_ in lines.description]
            yield from (dict(zip(names, values, strict=True)) for values in lines)


def _number(value: Any) -> float | None:
    kind: Callable[[Any], float] = float
    return None if value is None else kind(value)
