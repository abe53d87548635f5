"""Rows in series: runs of one cell in one setting, whose times can be compared, the oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from chaos.trends.row import RunRow, times_of

TOTAL = "total"


@dataclass(frozen=True)
class Series:
    """All runs of one cell on one platform with one SDK and number of ranks, the oldest first."""

    name: str
    rows: tuple[RunRow, ...]

    @property
    def newest(self) -> RunRow:
        return self.rows[-1]


def series_of(rows: Iterable[RunRow], scenario: str | None = None, *, soak: bool = False) -> list[Series]:
    """Return the series of ``rows``, which come oldest first. Runs of soaks count only with ``soak``.

    ``scenario`` leaves only the cells of that scenario, or the one cell ``scenario[cell]``. A series is named after its
    cell, and after its setting where the cell has several.
    """
    found: dict[tuple[str, str, str, str, int | None], list[RunRow]] = {}
    for row in rows:
        if (soak or not row.soak) and scenario in (None, row.scenario, row.name):
            key = (row.scenario, row.cell, row.platform, row.sdk.partition(" ")[0], row.ranks)
            found.setdefault(key, []).append(row)
    names = [own[0].name for own in found.values()]
    return [
        Series(own[0].name if names.count(own[0].name) == 1 else f"{own[0].name} ({_setting(own[0])})", tuple(own))
        for _, own in sorted(found.items(), key=lambda entry: entry[0][:4])
    ]


def _setting(row: RunRow) -> str:
    ranks = "" if row.ranks is None else f"{row.ranks} ranks"
    return ", ".join(part for part in (row.platform, row.sdk.partition(" ")[0], ranks) if part)


def samples(rows: Sequence[RunRow]) -> dict[str, list[float]]:
    """Return the times of each phase, and of the whole recovery as ``total``, in passing runs.

    The phases of a run that did not pass are not those of the planned recovery.
    """
    times: dict[str, list[float]] = {}
    for row in rows:
        if row.verdict == "pass":
            for phase, seconds in times_of(row).items():
                times.setdefault(phase, []).append(seconds)
    return times


def stale(series: Sequence[Series], days: float) -> list[Series]:
    """Return the series whose newest run began more than ``days`` days before the newest run of all."""
    begun = {id(own): when for own in series if (when := _begun(own.newest)) is not None}
    if not begun:
        return []
    last = max(begun.values()) - timedelta(days=days)
    return [own for own in series if id(own) in begun and begun[id(own)] < last]


def _begun(row: RunRow) -> datetime | None:
    try:
        return datetime.fromisoformat(row.started)
    except ValueError:
        return None
