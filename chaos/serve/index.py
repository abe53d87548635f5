"""The page of all runs in the directory, as it is now. Each result.json is read once for each of its states."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from chaos.report.index.coverage import Tried, coverage_of, tried_in
from chaos.report.index.render import Index, render_index
from chaos.report.index.rows import Row, Unread, in_order, row_of, without_verdict
from chaos.report.result_file import FILE as RESULT
from chaos.report.result_file import ResultUnreadable, read_result
from chaos.serve.runs import RunDirectories
from chaos.serve.trends import PATH as TRENDS


@dataclass(frozen=True)
class Summary:
    """The data of a run in the index."""

    row: Row
    tried: frozenset[Tried]


class IndexPage:
    """The index of a directory of runs."""

    def __init__(self, directories: RunDirectories, kinds: list[str]) -> None:
        self._directories = directories
        self._kinds = kinds
        self._known: dict[str, tuple[tuple[int, ...], Summary | Unread]] = {}
        self._lock = threading.Lock()

    def html(self, in_progress: int) -> str:
        """Return the page. Raises OSError when the directory cannot be read."""
        with self._lock:
            listing = self._directories.listing()
            known = {name: entry for name, path in listing.runs.items() if (entry := self._entry(name, path))}
            self._known = known
        summaries = [summary for _, summary in known.values() if isinstance(summary, Summary)]
        unread = [summary for _, summary in known.values() if isinstance(summary, Unread)]
        coverage = coverage_of((summary.tried for summary in summaries), self._kinds)
        rows = in_order(summary.row for summary in summaries)
        title, not_read = self._directories.reports.name, unread + listing.refused
        return render_index(
            Index(title, rows, not_read, coverage, trends=TRENDS, live="live/", in_progress=in_progress)
        )

    def _entry(self, name: str, path: Path) -> tuple[tuple[int, ...], Summary | Unread] | None:
        """Return the row of a run for the index; None where it has no result yet or gets none."""
        try:
            status = os.lstat(path / RESULT)
        except OSError:
            return next((((), ended) for ended in without_verdict(path)), None)
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        if name in self._known and self._known[name][0] == state:
            return self._known[name]
        try:
            result = read_result(path)
        except ResultUnreadable as error:
            return state, Unread(name, str(error))
        return state, Summary(row_of(name, result, f"run/{name}/"), tried_in(result))
