"""Rows of an earlier version of the store get the meaning of the present version.

Before version 3 ``finding`` said that the scenario names a known finding. Now it says whether that finding holds with
the run's SDK and explains all that failed, which only the run's result.json tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.trends.from_result import NoRow, row_of
from chaos.trends.row import RunRow

FIRST_OF_FINDING = 3
"""The first version whose ``finding`` has its present meaning."""


def renewed(rows: Iterable[RunRow], reports: Path) -> tuple[list[RunRow], list[str]]:
    """Return the rows that have another meaning now, made of their result.json, and a sentence about the others.

    A row without a result.json keeps its finding: as a failure beyond the finding it would be the usual verdict of its
    cell, and hide the next such failure.
    """
    changed, lost = [], []
    for row in rows:
        if not row.known:
            continue
        try:
            anew = row_of(reports / row.run, soak=row.soak)
        except (NoRow, OSError):
            anew = None
        if anew is None or anew.run != row.run:
            lost.append(row.run)
        elif anew != row:
            changed.append(anew)
    return changed, list(_about(lost))


def _about(lost: list[str]) -> Iterable[str]:
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        yield (
            f"stored by an earlier chaos, and without a result.json: {lost[0]}{more}: nothing tells whether the known "
            "finding explains all that failed, and it counts as explained"
        )
