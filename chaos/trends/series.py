"""Rows in series: runs of one cell in one setting, with comparable times, the oldest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from chaos.trends.rank_test import Stratum
from chaos.trends.row import RunRow, times_of

TOTAL = "total"

STALE_DAYS = 7.0
"""A cell that has not run for so long is no part of the night."""


@dataclass(frozen=True)
class Series:
    """All runs of one cell on one platform with one SDK and number of ranks, the oldest first."""

    name: str
    rows: tuple[RunRow, ...]

    @property
    def newest(self) -> RunRow:
        return self.rows[-1]


def series_of(
    rows: Iterable[RunRow], scenario: str | None = None, *, soak: bool = False, interrupted: bool = False
) -> list[Series]:
    """Return the series of ``rows``, which come oldest first. Runs of soaks count only with ``soak``.

    Runs that Ctrl-C has interrupted count only with ``interrupted``.

    ``scenario`` leaves only the cells of that scenario, or the one cell ``scenario[cell]``. A series is named after its
    cell, and after its setting where the cell has several.
    """
    by_cell: dict[tuple[str, str, str, str, int | None], list[RunRow]] = {}
    for row in rows:
        if (soak or not row.soak) and (interrupted or not row.interrupted) and is_of(row, scenario):
            key = (row.scenario, row.cell, row.platform, row.sdk.partition(" ")[0], row.ranks)
            by_cell.setdefault(key, []).append(row)
    names = [cell_rows[0].name for cell_rows in by_cell.values()]
    return [
        Series(
            cell_rows[0].name
            if names.count(cell_rows[0].name) == 1
            else f"{cell_rows[0].name} ({_setting(cell_rows[0])})",
            tuple(cell_rows),
        )
        for _, cell_rows in sorted(by_cell.items(), key=lambda entry: entry[0][:4])
    ]


def is_of(row: RunRow, scenario: str | None) -> bool:
    """Return whether a run is of ``scenario``: the name of one, that of a cell, or None for all."""
    return scenario in (None, row.scenario, row.name)


def _setting(row: RunRow) -> str:
    ranks = "" if row.ranks is None else f"{row.ranks} ranks"
    return ", ".join(part for part in (row.platform, row.sdk.partition(" ")[0], ranks) if part)


def strata_of(newest: Sequence[RunRow], before: Sequence[RunRow]) -> dict[str, list[Stratum]]:
    """Return the times of each phase, and of the whole recovery as ``total``, in strata of like runs.

    Runs on a loaded machine are compared among themselves, and so are those of a host that made runs of both sides.
    All other hosts share a stratum: the name of a machine in a cloud never comes back.
    """
    common = {row.host for row in newest} & {row.host for row in before}
    strata: dict[str, dict[tuple[str, bool], Stratum]] = defaultdict(lambda: defaultdict(lambda: Stratum([], [])))
    for side, rows in enumerate((newest, before)):
        for row in rows:
            key = (row.host if row.host in common else "", row.loaded)
            for phase, seconds in times_of(row).items():
                strata[phase][key][side].append(seconds)
    return {phase: list(pairs.values()) for phase, pairs in strata.items()}


def stale(series: Sequence[Series], days: float = STALE_DAYS) -> list[Series]:
    """Return the series whose newest run began more than ``days`` days before the newest run of all."""
    begun = {id(cell): when for cell in series if (when := cell.newest.begun) is not None}
    if not begun:
        return []
    last = max(begun.values()) - timedelta(days=days)
    return [cell for cell in series if id(cell) in begun and begun[id(cell)] < last]
