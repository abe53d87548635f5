"""The smallest slowdown that a gate could have found in each phase: what a pass is worth.

A gate that finds nothing says little where the times are noisy. The newest times are made longer until the gate would
report them, as if a slowdown of that size had been there in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.trends.compared import LEAST_SECONDS, ComparedPhase, Rules, phases_of, windows
from chaos.trends.rank_test import Strata, Stratum, share_longer
from chaos.trends.row import RunRow
from chaos.trends.slowdown import confirmed, p_slower

MOST_SHARE = 31.0
"""The largest slowdown that is tried: 32 times as long."""

_EXACT = 0.005
"""A share is determined to half a percent of the old time."""


@dataclass(frozen=True)
class Findable:
    """A phase of a cell with the smallest slowdown that the gate could have found; None for too few runs."""

    name: str
    phase: str
    share: float | None

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.phase


def findable(
    rows: Iterable[RunRow], rules: Rules, scenario: str | None = None, *, soak: bool = False
) -> tuple[Findable, ...]:
    """Return each compared phase, that with the smallest share first."""
    compared = phases_of(windows(rows, rules, scenario, soak=soak)[0], rules)
    limit = rules.alpha / max(1, len(compared))
    shares = [Findable(*entry.key, _share(entry, rules, limit)) for entry in compared]
    return tuple(sorted(shares, key=lambda entry: (entry.share is None, entry.share)))


def _share(entry: ComparedPhase, rules: Rules, limit: float) -> float | None:
    now = 1 + share_longer(entry.strata)

    def is_found(share: float) -> bool:
        strata = _scaled(entry.strata, (1 + share) / now)
        p = p_slower(strata, rules.max_slower)
        return p <= limit and confirmed(strata, p, rules.bound, LEAST_SECONDS) is not None

    low, high = 0.0, 1.0
    while not is_found(high):
        low, high = high, 2 * high + 1
        if high > MOST_SHARE:
            return None
    while high - low > _EXACT:
        middle = (low + high) / 2
        low, high = (low, middle) if is_found(middle) else (middle, high)
    return high


def _scaled(strata: Strata, factor: float) -> Strata:
    return [Stratum([seconds * factor for seconds in newest], before) for newest, before in strata]
