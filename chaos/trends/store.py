"""The store of all runs of a reports directory: runs.sqlite, one row a run and one a phase.

Several processes may write at once: each change is one transaction, and waits for those of others. The journal is the
ordinary one, not WAL, since reports directories also lie on network file systems, where WAL does not work.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from chaos.base.file_lock import is_no_file
from chaos.trends.row import MOST_NUMBER, PhaseTime, RunRow, on_one_line
from chaos.trends.unfinished import without_unfinished_write

FILE = "runs.sqlite"
SCHEMA = 3
"""Version of the store. Before 3, ``finding`` did not say whether the known finding explains the fail of a run."""
_ADDED = {"finding", "headline_id"}
"""Columns of ``run`` that stores of version 1 lack. A store of an earlier version gets them, empty."""
BUSY_SECONDS = 60.0
"""How long a writer waits for another."""

_COLUMNS = tuple(field.name for field in fields(RunRow) if field.name != "phases")
_NUMBERS = {"seconds", "working", "total", "rollback", "load"}
_WHOLES = {"ranks", "processors", "line", "soak"}
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of a file system that has no hard links, by the kind of file system."""
_PHASE_COLUMNS = ("run", "place", "name", "seconds", "budget")


class StoreUnusable(Exception):
    """The store cannot be used and stays as it is. The text names the file and says why and what to do."""


class StoreNotWritable(StoreUnusable):
    """The store cannot be made, or not be opened for writing. It may still be readable."""


class StoreDamaged(Exception):
    """The file is not an intact store. The text says why."""


@contextmanager
def changing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the store for one transaction; make it where there is none. Call it under the lock of the store.

    Raises StoreUnusable for a newer schema, StoreNotWritable where the file cannot be written, StoreDamaged for a file
    that is cut off or no store.
    """
    _refuse_odd_file(path)
    if not path.exists():
        _make_file(path)
    with _translated(path), closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        _check(connection, path, path)
        for name in sorted(_ADDED.difference(_columns(connection, "run"))):
            connection.execute(f"ALTER TABLE run ADD COLUMN {name} {_kind(name)} DEFAULT ''")
        yield connection
        connection.execute("COMMIT")


@contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing store to read it; nothing is written, not even a lock file. Raises as :func:`changing` does.

    A write that its killed process has left unfinished is passed over. Raises OSError where that needs a copy, and no
    copy can be made.
    """
    _refuse_odd_file(path)
    with without_unfinished_write(path) as readable, _translated(path):
        uri = f"{readable.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            _check(connection, path, readable)
            yield connection


def _refuse_odd_file(path: Path) -> None:
    if is_no_file(path) or path.is_symlink():
        raise StoreUnusable(f"{path}: is not a plain file: move it away")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Raise the errors of SQLite as those of the store."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "Could not decode to UTF-8" in str(error):  # damage that SQLite does not count as such
            raise StoreDamaged(str(error)) from error
        raise StoreNotWritable(f"{path}: cannot be read or written: {error}") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(str(error)) from error


def _check(connection: sqlite3.Connection, path: Path, opened: Path) -> None:
    """Refuse what is no intact store; ``opened`` is the file that SQLite reads, the store at ``path`` or its copy."""
    version = version_of(connection)
    if version > SCHEMA:
        raise StoreUnusable(
            f"{path}: was written by a newer chaos (schema {version}, this one knows {SCHEMA}); it stays as it is: "
            "use the newer chaos, or another --reports"
        )
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    ((pages,), (size,)) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    if (
        length := opened.stat().st_size
    ) < pages * size:  # SQLite reads a last page that is cut off as if zeros followed
        raise StoreDamaged(f"it is cut off: {length} of {pages * size} bytes")
    if version == 0 and not tables:
        raise StoreDamaged("it is empty")
    if not version or not {"run", "phase"} <= tables:
        raise StoreDamaged("it holds other tables than a store of runs")
    lacking = {*_COLUMNS}.symmetric_difference(_columns(connection, "run"))
    if not lacking <= (_ADDED if version == 1 else set()) or _columns(connection, "phase") != _PHASE_COLUMNS:
        raise StoreDamaged("its tables have other columns than a store of runs")


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version by which the rows of the store were written."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def set_version(connection: sqlite3.Connection) -> None:
    """Record that all rows have the meaning of the present version."""
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    return tuple(name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"))


def _make_file(path: Path) -> None:
    """Make a store that is whole from its first moment on: so an empty file is one that was cut off.

    A store that another process makes at the same time stays. Raises StoreNotWritable where no file can be written.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            _make(connection)
            connection.execute("COMMIT")
        _put_in_place(new, path)
    except (sqlite3.Error, OSError) as error:
        raise StoreNotWritable(f"{path}: cannot be made: {error}") from error
    finally:
        new.unlink(missing_ok=True)


def _put_in_place(new: Path, path: Path) -> None:
    """Give a whole store its name in one step, unless the name is taken. Raises OSError."""
    try:
        os.link(new, path)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without hard links a rename is the one step. It would replace a store that is there; the lock of the store,
        # which the caller holds, keeps others from making one between these two lines.
        if not os.path.lexists(path):
            new.rename(path)


def _make(connection: sqlite3.Connection) -> None:
    columns = ", ".join(f"{name} {_kind(name)}" for name in _COLUMNS)
    connection.execute(f"CREATE TABLE run ({columns}, PRIMARY KEY (run))")
    connection.execute(
        "CREATE TABLE phase (run TEXT NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, seconds REAL, budget REAL, "
        "PRIMARY KEY (run, place))"
    )
    connection.execute("CREATE INDEX run_started ON run (started)")
    set_version(connection)


def _kind(name: str) -> str:
    return "REAL" if name in _NUMBERS else "INTEGER" if name in _WHOLES else "TEXT NOT NULL"


def put_rows(connection: sqlite3.Connection, rows: Iterable[RunRow], *, replace: bool = True) -> None:
    """Add rows. A row of the same run is replaced, or kept where ``replace`` is False; a soak's run stays one."""
    for row in rows:
        known = connection.execute("SELECT soak FROM run WHERE run = ?", (row.run,)).fetchone()
        if known is not None and not replace:
            continue
        *values, _ = _values(row)
        values[_COLUMNS.index("soak")] = int(row.soak or bool(known and known[0]))
        marks = ", ".join("?" * len(values))
        connection.execute(f"INSERT OR REPLACE INTO run ({', '.join(_COLUMNS)}) VALUES ({marks})", values)
        connection.execute("DELETE FROM phase WHERE run = ?", (row.run,))
        connection.executemany(
            "INSERT INTO phase VALUES (?, ?, ?, ?, ?)",
            [(row.run, place, phase.name, phase.seconds, phase.budget) for place, phase in enumerate(row.phases)],
        )


def _values(row: RunRow) -> list[Any]:
    return list(astuple(row))


def mark_soak(connection: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Mark runs as those of a soak."""
    connection.executemany("UPDATE run SET soak = 1 WHERE run = ?", [(on_one_line(run),) for run in runs])


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether the store has no row."""
    return connection.execute("SELECT 1 FROM run LIMIT 1").fetchone() is None


def names_of(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the runs that have a row."""
    return {name for (name,) in connection.execute("SELECT run FROM run")}


def get_rows(connection: sqlite3.Connection) -> list[RunRow]:
    """Return all rows, the oldest first. Rows whose values have other types than the schema's are left out."""
    phases: dict[str, list[PhaseTime]] = {}
    for run, name, seconds, budget in connection.execute(
        "SELECT run, name, seconds, budget FROM phase ORDER BY run, place"
    ):
        if isinstance(name, str) and _is_number(seconds) and _is_number(budget):
            phases.setdefault(run, []).append(PhaseTime(on_one_line(name), seconds, budget))
    columns = [name for name in _COLUMNS if name in _columns(connection, "run")]
    ordered = connection.execute(f"SELECT {', '.join(columns)} FROM run ORDER BY started, run")
    named = (dict(zip(columns, values, strict=True)) for values in ordered)
    return [row for line in named if (row := row_from(line, phases.get(line["run"], ()))) is not None]


def row_from(named: Mapping[str, Any], phases: Sequence[PhaseTime]) -> RunRow | None:
    """Return the row of one line of the table, by column; None where a value has another type than the schema's.

    Columns that an earlier version lacked may be absent. Raises TypeError for unknown ones, ValueError for lost ones.
    """
    if lacking := {*_COLUMNS} - _ADDED - named.keys():
        raise ValueError(f"no column {min(lacking)}")
    for name, value in named.items():
        if name in _WHOLES:
            if not isinstance(value, int | None):
                return None
        elif name in _NUMBERS:
            if not _is_number(value):
                return None
        elif not isinstance(value, str):
            return None
    if named["verdict"] not in ("pass", "fail", "unknown"):
        return None
    texts = {name: on_one_line(value) for name, value in named.items() if isinstance(value, str)}
    return RunRow(**{**named, **texts, "soak": bool(named["soak"])}, phases=tuple(phases))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and abs(value) <= MOST_NUMBER)
