"""Whether new times are longer than old ones by more than chance: the one-sided test of Mann and Whitney.

It compares ranks and not means, so neither outliers nor the form of the noise matter. One run in a hundred that hangs
for an hour moves a mean, and not a rank by more than one place.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import median


def p_longer(newest: Sequence[float], before: Sequence[float]) -> float:
    """Return the probability of times at least this much longer, if both samples came from one distribution.

    The exact distribution is used where no two times are equal, else its normal approximation.
    """
    new, old = len(newest), len(before)
    if not new or not old:
        return 1.0
    wins, ties = _wins(newest, before)
    values = Counter([*newest, *before])
    if not ties and len(values) == new + old:
        return _tails(new, old)[wins]
    total = new + old
    tied = sum(count**3 - count for count in values.values())
    variance = new * old / 12 * (total + 1 - tied / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    score = (wins + ties / 2 - new * old / 2 - 0.5) / math.sqrt(variance)
    return 0.5 * math.erfc(score / math.sqrt(2))


def lowest_p(new: int, old: int) -> float:
    """Return the lowest probability that samples of these sizes can have: every new time is longer than every old."""
    return 1 / math.comb(new + old, new)


def share_longer(newest: Sequence[float], before: Sequence[float]) -> float:
    """Return by which share the new times are longer: the median ratio of a new time to an old one, less 1."""
    ratios = [new / old for new in newest for old in before if old > 0]
    return median(ratios) - 1 if ratios else 0.0


def seconds_longer(newest: Sequence[float], before: Sequence[float]) -> float:
    """Return by how many seconds the new times are longer: the median difference (Hodges and Lehmann)."""
    return median(new - old for new in newest for old in before)


def _wins(newest: Sequence[float], before: Sequence[float]) -> tuple[int, int]:
    """Return in how many pairs the new time is longer, and in how many both are equal."""
    ordered = sorted(before)
    lower = [bisect_left(ordered, new) for new in newest]
    upper = [bisect_right(ordered, new) for new in newest]
    return sum(lower), sum(upper) - sum(lower)


@cache
def _tails(new: int, old: int) -> tuple[float, ...]:
    """Return the probability of at least 0, 1, 2, … wins, each order of the times being as likely as any other.

    The number of orders with a number of wins is a coefficient of the Gaussian binomial.
    """
    counts = [1] + [0] * (new * old)
    for index in range(1, new + 1):
        for wins in range(new * old, old + index - 1, -1):  # times 1 - q^(old + index)
            counts[wins] -= counts[wins - old - index]
        for wins in range(index, new * old + 1):  # divided by 1 - q^index
            counts[wins] += counts[wins - index]
    total, below, tails = math.comb(new + old, new), 0, []
    for count in counts:
        tails.append((total - below) / total)
        below += count
    return tuple(tails)
