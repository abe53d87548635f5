"""Whether a phase got slower than noise explains: a rank test, and a bound of the effect that confirms it.

The rank test holds the chance of a false alarm in one call, whatever the form of the noise. A gate is called every
night on samples that overlap, so a rare night would come up sooner or later. The bound of the effect rules it out: the
whole interval of plausible slowdowns must lie above what noise does to a single run, or with many runs to their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TypeVar

from chaos.trends.rank_test import Strata, Stratum, p_longer, seconds_longer, share_longer

CONFIDENCE = 0.98
"""The confidence with which the slowdown is larger than the bound."""

RUNS = 10
"""Newest runs up to which a slowdown must exceed the noise of a single run."""

_DEVIATION = 1.0483
"""The standard deviation of normal noise over the median difference of two values (Shamos)."""

T = TypeVar("T")


@dataclass(frozen=True)
class Slowdown:
    """The comparison of one phase.

    ``p`` is the probability of such times without a slowdown beyond what is allowed. ``share`` and ``seconds`` say by
    how much the phase is slower, ``bound`` by how much it has to be slower, at least and with confidence.
    """

    p: float
    share: float
    seconds: float
    bound: float


def p_slower(strata: Strata, allowed: float) -> float:
    """Return the probability of times like the newest ones if the phase is slower by no more than ``allowed``."""
    return p_longer(_longer(strata, allowed))


def confirmed(strata: Strata, p: float, least: float, least_seconds: float) -> Slowdown | None:
    """Return the slowdown where its lower confidence bound is at least ``least`` and at least what noise does.

    That is the noise of a single run. Where more than :data:`RUNS` newest runs are compared it shrinks as the noise of
    a mean does, so an alarm takes as rare a chance as with :data:`RUNS`.
    """
    count = sum(len(newest) for newest, before in strata if before)
    bound = max(least, noise(strata) * min(1.0, math.sqrt(RUNS / count)) if count else least)
    if p_longer(_longer(strata, bound)) > 1 - CONFIDENCE:
        return None
    seconds = seconds_longer(strata)
    return Slowdown(p, share_longer(strata), seconds, bound) if seconds >= least_seconds else None


def noise(strata: Strata) -> float:
    """Return the noise of single runs as a share: a standard deviation that a few long times do not move."""
    logarithms = [[math.log(seconds) for seconds in sample if seconds > 0] for pair in strata for sample in pair]
    apart = [abs(first - second) for sample in logarithms for first, second in combinations(sample, 2)]
    return math.expm1(_DEVIATION * median(apart)) if apart else 0.0


def holm(compared: Iterable[T], p_of: Callable[[T], float], alpha: float) -> list[tuple[T, float]]:
    """Return each significant comparison with its limit, by the method of Holm.

    The probability that any of them is due to chance is at most ``alpha``, however they depend on each other.
    """
    ordered = sorted(compared, key=p_of)
    significant: list[tuple[T, float]] = []
    for place, entry in enumerate(ordered):
        limit = alpha / (len(ordered) - place)
        if p_of(entry) > limit:
            break
        significant.append((entry, limit))
    return significant


def _longer(strata: Strata, share: float) -> Strata:
    return [Stratum(newest, [seconds * (1 + share) for seconds in before]) for newest, before in strata]
