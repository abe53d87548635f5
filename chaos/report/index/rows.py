"""One row for each run of a directory, from its result.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.evidence.finding import Verdict
from chaos.history.jsonl import decode
from chaos.report.known_finding import explains, failed_beyond, signatures
from chaos.report.page.model import FILE as PAGE
from chaos.report.result import Result
from chaos.report.result_file import ResultUnreadable, has_result, read_result
from chaos.report.short import headline_text
from chaos.store.directory import RUN_FILE
from chaos.store.ownership import is_live

_ORDER = {"fail": 0, "unknown": 1, "finding": 2, "pass": 3}


@dataclass(frozen=True)
class Row:
    """A run. ``word`` is its verdict, or ``finding`` where it failed as a known finding of the vendor says.

    ``headline`` says what broke first, empty for a pass. ``page`` is the path of its page below that of the index, None
    where there is none. ``seconds`` is the duration of the run, ``recovery`` that of its recovery.
    """

    run: str
    scenario: str
    cell: str
    verdict: Verdict
    word: str
    headline: str
    started: str
    seconds: float | None
    mechanism: str
    recovery: float | None
    page: str | None


@dataclass(frozen=True)
class Unread:
    """A run without a result.json that can be read, and why."""

    run: str
    reason: str


def read_results(directory: Path) -> tuple[list[tuple[Path, Result]], list[Unread]]:
    """Return the results of all runs in a directory, and the runs that have none that can be read.

    A fault-free run that serves only as a baseline gets no result, and is left out.
    """
    results: list[tuple[Path, Result]] = []
    unread: list[Unread] = []
    for path in sorted(directory.iterdir()):
        if not has_result(path):
            unread.extend(without_verdict(path))
            continue
        try:
            results.append((path, read_result(path)))
        except ResultUnreadable as error:
            unread.append(Unread(path.name, str(error)))
    return results, unread


def without_verdict(path: Path) -> Iterator[Unread]:
    """Yield the run in a directory without a result.json, if its harness has ended all the same.

    Neither a fault-free run nor a fault in an attached job gets a verdict, and a run in progress gets one later.
    """
    if path.is_symlink() or not (path / "plan.json").is_file():
        return
    try:
        is_baseline = decode(read_plain(path / RUN_FILE)).get("baseline") is True
    except (OSError, ValueError):
        is_baseline = False
    try:
        ended = not is_live(path)
    except OSError:  # the lock is another user's
        ended = False
    if ended and not is_baseline:
        yield Unread(path.name, f"its harness ended before the verdict: run `chaos analyze {path}`")


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
        "" if result.verdict == "pass" else headline_text(result),
        result.made.started or "",
        result.made.seconds,
        result.recovery.mechanism or "",
        result.recovery.total,
        page,
    )


def is_known(result: Result) -> bool:
    """Return whether a run failed by nothing but known findings: its scenario's, or those with a signature."""
    checks = [{"name": check.name, "verdict": check.verdict, "data": check.data.to_json()} for check in result.checks]
    by_scenario = explains(result.plan, result.simulated, failed_beyond(checks))
    return result.verdict == "fail" and (by_scenario or bool(signatures(checks)))


def _place(row: Row) -> tuple[int, str, str, str]:
    return _ORDER[row.word], row.scenario, row.cell, row.started


def by_scenario(scenario_rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield each scenario with its runs, the latest last: a line of squares on the page."""
    for scenario in sorted({row.scenario for row in scenario_rows}):
        yield scenario, sorted((row for row in scenario_rows if row.scenario == scenario), key=lambda row: row.started)
