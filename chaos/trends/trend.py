"""Times of each phase over many nights: how they spread, where they changed, and what changed with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from chaos.trends.row import RunRow, changes_between, times_of
from chaos.trends.series import TOTAL, Series, series_of

ALPHA = 0.001
"""The chance of a change point where there is none, over all phases of a cell."""

LEAST_RUNS = 5
"""Runs on either side of a change point, at least."""


@dataclass(frozen=True)
class ChangePoint:
    """The run from which on a phase took another time. ``changes`` has what else changed with that run or the next.

    ``medians`` are the seconds before and from then on, ``p`` the probability of such a change by chance.
    """

    run: str
    started: str
    index: int
    medians: tuple[float, float]
    p: float
    changes: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class PhaseTrend:
    """One phase over the passing runs, in seconds. ``spread`` is the range of the middle half over the median."""

    phase: str
    runs: tuple[str, ...]
    times: tuple[float, ...]
    p50: float
    p95: float
    spread: float | None
    change_points: tuple[ChangePoint, ...]


@dataclass(frozen=True)
class Trend:
    """One cell over many nights. ``verdicts`` counts the verdicts of its runs, interrupted runs apart."""

    name: str
    runs: int
    verdicts: dict[str, int]
    first: str
    last: str
    phases: tuple[PhaseTrend, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain data (docs/guides/trends.md)."""
        return asdict(self)


def trends(
    rows: Iterable[RunRow], scenario: str | None = None, *, last: int | None = None, soak: bool = False
) -> list[Trend]:
    """Return the trend of each cell over its last ``last`` runs, by default over all. ``rows`` come oldest first."""
    return [
        trend_of(Series(series.name, series.rows[-last:] if last else series.rows))
        for series in series_of(rows, scenario, soak=soak, interrupted=True)
    ]


def trend_of(series: Series) -> Trend:
    """Return the phases of a series with their change points."""
    passing = [row for row in series.rows if row.verdict == "pass"]
    names = [name for name in dict.fromkeys(name for row in passing for name in times_of(row)) if name != TOTAL]
    words = ["interrupted" if row.interrupted else row.verdict for row in series.rows]
    verdicts = {word: words.count(word) for word in ("pass", "fail", "unknown", "interrupted")}
    return Trend(
        series.name,
        len(series.rows),
        verdicts,
        series.rows[0].started,
        series.newest.started,
        tuple(_phase(name, passing, len(names) + 1) for name in (*names, TOTAL) if _measured(name, passing)),
    )


def _measured(name: str, rows: Sequence[RunRow]) -> list[RunRow]:
    return [row for row in rows if name in times_of(row)]


def _phase(name: str, passing: Sequence[RunRow], phases: int) -> PhaseTrend:
    rows = _measured(name, passing)
    times = [times_of(row)[name] for row in rows]
    middle = median(times)
    low, _, high = quantiles(times, n=4) if len(times) > 1 else (middle, middle, middle)
    points = sorted(change_points(times, ALPHA / phases))
    bounds = [0, *(index for index, _ in points), len(times)]
    return PhaseTrend(
        name,
        tuple(row.run for row in rows),
        tuple(times),
        middle,
        _percentile(times, 0.95),
        (high - low) / middle if middle > 0 else None,
        tuple(
            ChangePoint(
                rows[index].run,
                rows[index].started,
                index,
                (median(times[bounds[place] : index]), median(times[index : bounds[place + 2]])),
                p,
                _changes(rows, index),
            )
            for place, (index, p) in enumerate(points)
        ),
    )


def change_points(times: Sequence[float], alpha: float, offset: int = 0) -> Iterator[tuple[int, float]]:
    """Yield the index of each time from which on the times are others, with its probability by chance.

    Pettitt's test, which compares ranks: where it finds a change, both sides are searched again.
    """
    count = len(times)
    if count < 2 * LEAST_RUNS:
        return
    ranks = _ranks(times)
    heights, total = [], 0.0
    for index, rank in enumerate(ranks[:-1], 1):
        total += rank
        heights.append(abs(2 * total - index * (count + 1)))
    inner = range(LEAST_RUNS - 1, count - LEAST_RUNS)
    best = max(inner, key=heights.__getitem__)
    p = min(1.0, 2 * math.exp(-6 * heights[best] ** 2 / (count**3 + count**2)))
    if p > alpha:
        return
    yield from change_points(times[: best + 1], alpha, offset)
    yield offset + best + 1, p
    yield from change_points(times[best + 1 :], alpha, offset + best + 1)


def _ranks(times: Sequence[float]) -> list[float]:
    """Return the rank of each time, from 1; equal times share the mean of theirs."""
    order = sorted(range(len(times)), key=times.__getitem__)
    ranks, begin = [0.0] * len(times), 0
    while begin < len(order):
        end = begin
        while end < len(order) and times[order[end]] == times[order[begin]]:
            end += 1
        for place in order[begin:end]:
            ranks[place] = (begin + 1 + end) / 2
        begin = end
    return ranks


def _changes(rows: Sequence[RunRow], index: int) -> dict[str, tuple[str, str]]:
    """Return what changed with a run; where nothing did, what changed with one of its neighbours.

    Noise can move the change point that a test finds by a run or two.
    """
    for place in (index, index - 1, index + 1, index - 2, index + 2):
        if 0 < place < len(rows) and (changes := changes_between(rows[place - 1], rows[place])):
            return changes
    return {}


def _percentile(times: Sequence[float], share: float) -> float:
    """Return the time that a share of all does not exceed."""
    return sorted(times)[max(0, math.ceil(share * len(times)) - 1)]
