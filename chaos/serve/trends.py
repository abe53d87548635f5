"""The page of times over nights, made of the store and of the runs' files when it is asked for.

The trends.html in the directory is not served, for the same reason as a run's report.html. The store is only read: the
rows of runs that are not in it yet are made for the page, and kept nowhere.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from chaos.evidence.text import readable
from chaos.report.result_file import FILE as RESULT
from chaos.serve.runs import Listing, RunDirectories
from chaos.trends.finished import SOAK_FILE
from chaos.trends.store import FILE as STORE
from chaos.trends.store import StoreUnusable

PATH = "trends.html"
LINKS = (("./", "All runs"), ("live/", "Live"))

_State = tuple[tuple[str, tuple[int, ...] | None], ...]


class TrendsPage:
    """The page of all cells. It is made again only after the store, the runs or their results have changed."""

    def __init__(self, directories: RunDirectories) -> None:
        self._directories = directories
        self._lock = threading.Lock()
        self._made: tuple[_State, str] | None = None

    def html(self) -> str:
        """Return the page. Raises OSError, and StoreUnusable where the store cannot be read."""
        with self._lock:
            listing = self._directories.listing()
            state = tuple(_state(self._directories.reports, listing))
            if self._made is None or self._made[0] != state:
                self._made = state, _page(self._directories, listing)
            return self._made[1]


def _page(directories: RunDirectories, listing: Listing) -> str:
    from chaos.trends.page.data import page_data
    from chaos.trends.page.write import render_trends
    from chaos.trends.reading import look_at_runs

    _refuse_of_others(directories)
    runs = look_at_runs(directories.reports, directories=listing.runs.values())

    def link(run: str) -> str | None:
        return f"run/{quote(os.fsencode(run))}/" if run in listing.runs else None

    notes = [*map(readable, runs.notes), *(f"{unread.run}: {unread.reason}" for unread in listing.refused)]
    return render_trends(page_data(runs.rows, link), directories.reports.name, LINKS, notes)


def _refuse_of_others(directories: RunDirectories) -> None:
    """Refuse a store that somebody else has put into the directory. Raises StoreUnusable."""
    store = directories.reports / STORE
    if store.is_symlink() or not store.exists():
        return  # a link is refused where the store is opened
    if (owner := store.lstat().st_uid) not in directories.owners():
        raise StoreUnusable(f"{store}: belongs to user {owner}, and is not read")


def _state(reports: Path, listing: Listing) -> Iterator[tuple[str, tuple[int, ...] | None]]:
    paths = [reports / STORE, reports / SOAK_FILE, *(path / RESULT for path in listing.runs.values())]
    for path in paths:
        try:
            status = path.lstat()
        except OSError:
            yield str(path), None
        else:
            yield str(path), (status.st_ino, status.st_size, status.st_mtime_ns)
