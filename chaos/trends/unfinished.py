"""A store whose last writer was killed inside its transaction, read without a change to it.

SQLite takes such a write back when the store is next opened for writing. A reader may not write, so the files are
copied, and the write is taken back in the copy.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_SUFFIX = "-journal"


@contextmanager
def without_unfinished_write(path: Path) -> Iterator[Path]:
    """Give the path of the store to read: a copy without the unfinished write where there is one, else ``path``.

    The copy is private, and is gone afterwards. It is not used where a writer has changed the files while they were
    copied: that writer has taken the write back. Raises OSError where no copy can be made.
    """
    if not _is_unfinished(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="chaos-store-") as directory:
        copy = Path(directory) / path.name
        before = _state(path)
        for suffix in ("", _SUFFIX):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}", follow_symlinks=False)
        if before != _state(path) or not _take_back(copy):
            yield path
        else:
            yield copy


def _is_unfinished(path: Path) -> bool:
    """Return whether SQLite refuses to read the store without writing, and a journal of a write lies beside it."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:
        journal = Path(f"{path}{_SUFFIX}")
        return journal.is_file() and not journal.is_symlink()
    except sqlite3.DatabaseError:
        return False
    return False


def _take_back(copy: Path) -> bool:
    """Open the copy for writing, so that SQLite takes the write back; return whether it could."""
    try:
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    """Return what tells one content of the store and its journal from another."""
    states: list[tuple[int, int, int] | None] = []
    for suffix in ("", _SUFFIX):
        try:
            status = Path(f"{path}{suffix}").lstat()
        except FileNotFoundError:
            states.append(None)
        else:
            states.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return states
