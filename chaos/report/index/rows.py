"""One row for each run of a directory, from its result.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.evidence.finding import Verdict
from chaos.report.page.model import FILE as PAGE
from chaos.report.result import FILE as RESULT
from chaos.report.result import Result, ResultUnreadable, read_result

_ORDER = {"fail": 0, "unknown": 1, "finding": 2, "pass": 3}


@dataclass(frozen=True)
class Row:
    """A run. ``word`` is its verdict, or ``finding`` where it failed as a known finding of the vendor says.

    ``page`` is the path of its page below that of the index, None where there is none. ``seconds`` is the duration of
    the run, ``recovery`` that of its recovery.
    """

    run: str
    scenario: str
    cell: str
    verdict: Verdict
    word: str
    reason: str
    started: str
    seconds: float | None
    mechanism: str
    recovery: float | None
    page: str | None


@dataclass(frozen=True)
class Unread:
    """A run whose result.json cannot be read, and why."""

    run: str
    reason: str


def read_results(directory: Path) -> tuple[list[tuple[Path, Result]], list[Unread]]:
    """Return the results of all runs in a directory, and the runs whose result cannot be read.

    A fault-free run that serves only as a baseline has no result, and is left out.
    """
    results, unread = [], []
    for path in sorted(directory.iterdir()):
        if path.is_symlink() or not (path / RESULT).exists():
            continue
        try:
            results.append((path, read_result(path)))
        except ResultUnreadable as error:
            unread.append(Unread(path.name, str(error)))
    return results, unread


def rows(directory: Path, results: list[tuple[Path, Result]]) -> list[Row]:
    """Return a row for each run: failures first, then by scenario and time."""
    return in_order(row_of(path.name, result, _page(directory, path)) for path, result in results)


def in_order(made: Iterable[Row]) -> list[Row]:
    """Return rows in the order of the page: failures first, then by scenario and time."""
    return sorted(made, key=_place)


def _page(directory: Path, path: Path) -> str | None:
    page = path / PAGE
    return page.relative_to(directory).as_posix() if page.is_file() and not page.is_symlink() else None


def row_of(run: str, result: Result, page: str | None) -> Row:
    """Return the row of a run whose page is at ``page``."""
    return Row(
        run,
        result.scenario,
        result.cell,
        result.verdict,
        "finding" if is_known(result) else result.verdict,
        result.reason,
        result.made.started or "",
        result.made.seconds,
        result.recovery.mechanism or "",
        result.recovery.total,
        page,
    )


def is_known(result: Result) -> bool:
    """Return whether a run failed in nothing but the checks in which its known finding may fail."""
    finding, failing = result.plan.get("finding"), result.plan.get("failing") or []
    if result.verdict != "fail" or not finding:
        return False
    also = result.plan.get("failing_with_vendor") or []
    return {check.name for check in result.checks if check.verdict == "fail"} <= {*failing, *also}


def _place(row: Row) -> tuple[int, str, str, str]:
    return _ORDER[row.word], row.scenario, row.cell, row.started


def by_scenario(scenario_rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield each scenario with its runs, the latest last: a line of squares on the page."""
    for scenario in sorted({row.scenario for row in scenario_rows}):
        yield scenario, sorted((row for row in scenario_rows if row.scenario == scenario), key=lambda row: row.started)
