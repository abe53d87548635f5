"""The data of the page of trends, from rows of the store. Facts only, as in a run's page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chaos.report.html.document import SYMBOLS as VERDICT_SYMBOLS
from chaos.report.page.model import FILE as PAGE
from chaos.trends.gate_text import changed
from chaos.trends.row import RunRow
from chaos.trends.series import Series, series_of
from chaos.trends.trend import PhaseTrend, trend_of

SYMBOLS = {**VERDICT_SYMBOLS, "interrupted": "⊘"}
"""The symbol of each verdict, and of an interrupted run."""


Links = Callable[[str], str | None]
"""The link to the page of a run by its name; None where there is none."""


def page_data(
    rows: Iterable[RunRow], links: Links, scenario: str | None = None, *, last: int | None = None, soak: bool = False
) -> dict[str, Any]:
    """Return the cells with their runs, phases, change points and flips."""
    every = series_of(rows, scenario, soak=soak, interrupted=True)
    return {
        "cells": [_cell(Series(series.name, series.rows[-last:] if last else series.rows), links) for series in every]
    }


def _cell(series: Series, links: Links) -> dict[str, Any]:
    trend = trend_of(series)
    places = {row.run: index for index, row in enumerate(series.rows)}
    return {
        "name": series.name,
        "verdicts": {word: number for word, number in trend.verdicts.items() if number},
        "first": trend.first[:10],
        "last": trend.last[:10],
        "runs": [_run(row, links) for row in series.rows],
        "phases": [_phase(phase, series.rows, places) for phase in trend.phases],
        "flips": list(_flips(series.rows)),
    }


def _run(row: RunRow, links: Links) -> dict[str, Any]:
    word = "interrupted" if row.interrupted else row.verdict
    return {
        "run": row.run,
        "started": row.started,
        "word": word,
        "symbol": SYMBOLS[word],
        "headline": row.headline,
        "report": links(row.run),
    }


def links_to_files(reports: Path, page: Path) -> Links:
    """Return the links from the file ``page`` to the report.html of each run of ``reports`` that still has one."""

    def link(run: str) -> str | None:
        directory = reports / run
        if run in ("", "..") or Path(run).name != run or directory.is_symlink():
            return None
        path = directory / PAGE
        if not path.is_file() or path.is_symlink():
            return None
        return quote(Path(os.path.relpath(path.resolve(), page.parent.resolve())).as_posix())

    return link


def _phase(phase: PhaseTrend, rows: Sequence[RunRow], places: dict[str, int]) -> dict[str, Any]:
    times: list[float | None] = [None] * len(rows)
    for run, seconds in zip(phase.runs, phase.times, strict=True):
        times[places[run]] = round(seconds, 6)
    return {
        "phase": phase.phase,
        "count": len(phase.times),
        "times": times,
        "p50": phase.p50,
        "p95": phase.p95,
        "spread": phase.spread,
        "points": [
            {
                "at": places[point.run],
                "run": point.run,
                "date": point.started[:10],
                "before": point.medians[0],
                "now": point.medians[1],
                "p": point.p,
                "changes": changed(point.changes),
            }
            for point in phase.change_points
        ],
    }


def _flips(rows: Sequence[RunRow]) -> Iterator[dict[str, Any]]:
    """Yield each run that passes after a fail, or fails after a pass; other verdicts between them do not count.

    Nor does a known finding that shows now and then.
    """
    before: RunRow | None = None
    for index, row in enumerate(rows):
        if row.verdict == "unknown" or row.excused:
            continue
        if before is not None and before.verdict != row.verdict:
            yield {
                "at": index,
                "text": f"{before.verdict} → {row.verdict}",
                "same": before.versions == row.versions,
            }
        before = row
