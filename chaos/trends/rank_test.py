"""Whether new times are longer than old ones by more than chance: the one-sided test of Mann and Whitney.

It compares ranks and not means, so neither outliers nor the form of the noise matter. One run in a hundred that hangs
for an hour moves a mean, and not a rank by more than one place.

Samples come in strata, as van Elteren has them: a new time is compared with the old times of its own stratum only.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import NamedTuple


class Stratum(NamedTuple):
    """New times, and the old times that they can be compared with."""

    newest: list[float]
    before: list[float]


Strata = Sequence[Stratum]


def p_longer(strata: Strata) -> float:
    """Return the probability of times at least this much longer, if both samples of a stratum had one distribution.

    The exact distribution is used where no two times of a stratum are equal, else its normal approximation.
    """
    strata = [stratum for stratum in strata if stratum.newest and stratum.before]
    if not strata:
        return 1.0
    pairs = [_wins(stratum) for stratum in strata]
    wins, ties = sum(won for won, _ in pairs), sum(tied for _, tied in pairs)
    values = [Counter([*newest, *before]) for newest, before in strata]
    if not ties and all(len(counts) == counts.total() for counts in values):
        return _tails(tuple((len(newest), len(before)) for newest, before in strata))[wins]
    variance: float = sum(map(_variance, strata, values))
    if variance <= 0:
        return 1.0
    middle = sum(len(newest) * len(before) for newest, before in strata) / 2
    return 0.5 * math.erfc((wins + ties / 2 - middle - 0.5) / math.sqrt(2 * variance))


def lowest_p(sizes: Sequence[tuple[int, int]]) -> float:
    """Return the lowest probability that strata of these sizes can have: every new time is longer than every old."""
    return 1 / math.prod(math.comb(new + old, new) for new, old in sizes)


def share_longer(strata: Strata) -> float:
    """Return by which share the new times are longer: the median ratio of a new time to an old one, less 1."""
    ratios = [new / old for newest, before in strata for new in newest for old in before if old > 0]
    return median(ratios) - 1 if ratios else 0.0


def seconds_longer(strata: Strata) -> float:
    """Return by how many seconds the new times are longer: the median difference (Hodges and Lehmann)."""
    return median(new - old for newest, before in strata for new in newest for old in before)


def _wins(stratum: Stratum) -> tuple[int, int]:
    """Return in how many pairs the new time is longer, and in how many both are equal."""
    ordered = sorted(stratum.before)
    lower = [bisect_left(ordered, new) for new in stratum.newest]
    upper = [bisect_right(ordered, new) for new in stratum.newest]
    return sum(lower), sum(upper) - sum(lower)


def _variance(stratum: Stratum, values: Counter[float]) -> float:
    new, old = len(stratum.newest), len(stratum.before)
    total = new + old
    tied = sum(count**3 - count for count in values.values())
    return new * old / 12 * (total + 1 - tied / (total * (total - 1)))


@cache
def _tails(sizes: tuple[tuple[int, int], ...]) -> tuple[float, ...]:
    """Return the probability of at least 0, 1, 2, … wins, each order of a stratum's times being as likely as any."""
    orders = [1]
    for new, old in sizes:
        stratum_orders = _orders(new, old)
        longer = [0] * (len(orders) + len(stratum_orders) - 1)
        for wins, number in enumerate(orders):
            for more, other in enumerate(stratum_orders):
                longer[wins + more] += number * other
        orders = longer
    total, below, tails = sum(orders), 0, []
    for number in orders:
        tails.append((total - below) / total)
        below += number
    return tuple(tails)


@cache
def _orders(new: int, old: int) -> tuple[int, ...]:
    """Return how many orders of the times have 0, 1, 2, … wins: the coefficients of the Gaussian binomial."""
    counts = [1] + [0] * (new * old)
    for index in range(1, new + 1):
        for wins in range(new * old, old + index - 1, -1):  # times 1 - q^(old + index)
            counts[wins] -= counts[wins - old - index]
        for wins in range(index, new * old + 1):  # divided by 1 - q^index
            counts[wins] += counts[wins - index]
    return tuple(counts)
