"""The comparison of a gate: the newest runs of each cell with the runs before them, phase by phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from chaos.trends.rank_test import Strata, Stratum
from chaos.trends.row import RunRow
from chaos.trends.series import Series, series_of, stale, strata_of
from chaos.trends.slowdown import p_slower

ALPHA = 0.002
"""The chance of a false alarm in one call, over all phases and scenarios together."""

NEWEST = 10
"""How many of the newest runs are compared with the runs before them."""

LEAST_SECONDS = 0.01
"""A slowdown below this is not reported: the harness does not measure shorter times."""

LEAST_SHARE = 0.05
"""A slowdown below this share is not reported: nights on a busy machine can look alike."""


@dataclass(frozen=True)
class Rules:
    """The rules of a gate. ``against`` runs before the ``newest`` are looked at.

    ``max_slower`` is the share by which a phase may get slower. ``alpha`` is the chance of a false alarm in one call.
    A slowdown below the share ``least`` is not reported.
    """

    against: int = 30
    newest: int = NEWEST
    max_slower: float = 0.0
    alpha: float = ALPHA
    least: float = LEAST_SHARE

    @property
    def bound(self) -> float:
        """The share by which a phase must be slower, at least, to be reported."""
        return max(self.least, self.max_slower)


@dataclass(frozen=True)
class ComparedPhase:
    """One phase of a cell: its newest times beside those before, and the probability that they differ by chance."""

    series: Series
    phase: str
    strata: Strata
    p: float

    @property
    def key(self) -> tuple[str, str]:
        return self.series.name, self.phase

    @property
    def newest(self) -> list[float]:
        return list(chain.from_iterable(stratum.newest for stratum in self.strata))

    @property
    def before(self) -> list[float]:
        return list(chain.from_iterable(stratum.before for stratum in self.strata))


def windows(
    rows: Iterable[RunRow], rules: Rules, scenario: str | None = None, *, soak: bool = False
) -> tuple[list[Series], list[Series]]:
    """Return the runs of each cell that the rules look at, and the cells that have not run for a week."""
    every = series_of(rows, scenario, soak=soak)
    gone = stale(every)
    count = rules.newest + rules.against
    return [Series(series.name, series.rows[-count:]) for series in every if series not in gone], gone


def phases_of(looked_at: Iterable[Series], rules: Rules) -> list[ComparedPhase]:
    """Return each phase of each cell. Only passing runs have the phases of the planned recovery."""
    return [
        ComparedPhase(series, phase, strata, p_slower(strata, rules.max_slower))
        for series in looked_at
        for phase, strata in _strata(series.rows, rules).items()
    ]


def _strata(rows: Sequence[RunRow], rules: Rules) -> dict[str, list[Stratum]]:
    passing = [row for row in rows if row.verdict == "pass"]
    return strata_of(passing[-rules.newest :], passing[: -rules.newest])
