"""The finished runs of a reports directory, and their rows from the result.json files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from chaos.report.result_file import has_result
from chaos.store.json_lines import JsonLines
from chaos.trends.from_result import NoRow, row_of
from chaos.trends.row import RunRow

SOAK_FILE = "soak.jsonl"


def missing(run_dirs: Iterable[Path], known: set[str], soaked: frozenset[str]) -> tuple[list[RunRow], list[str]]:
    """Return rows of the finished runs that are not known, and why others have none."""
    rows, skipped = [], []
    candidates = list(run_dirs)
    taken = known | {run_dir.name for run_dir in candidates}
    for run_dir in candidates:
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


def finished(reports: Path) -> Iterator[Path]:
    """Yield the runs that have a result. Raises OSError."""
    for path in sorted(reports.iterdir()):
        if has_result(path):
            yield path


def soak_runs(reports: Path) -> frozenset[str]:
    """Return the names of runs that the record of soaks names; none where it cannot be read."""
    try:
        records = JsonLines(reports / SOAK_FILE).read()
    except (OSError, ValueError):
        return frozenset()
    return frozenset(name for record in records if isinstance(made := record.get("run"), str) for name in made.split())
