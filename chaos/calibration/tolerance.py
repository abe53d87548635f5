"""From the noise of a job to its tolerance.

The largest difference of a run and the baseline is a draw from the same distribution as that of any two fault-free
runs. Its logarithm is taken as a sum of a normal effect of each of the two runs and a normal rest. A limit is the
prediction bound for one more pair: ``mean + t * s * sqrt(1 + 2/n)`` of the logarithms, with Student's ``t`` of
``n - 1`` degrees of freedom for ``n`` runs, and never below the largest difference that was seen. The share of false
alarms is divided by the number of limits (Bonferroni).

The mean loss is a single value for each rank, and its difference may be close to zero by chance, which a logarithm
makes much of. It is taken as normal itself: the limit is ``t * s * sqrt(2)`` with the standard deviation ``s`` over the
runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.calibration.noise import LOSS, MEAN, Noise, Quantity
from chaos.calibration.student import upper_quantile

LEAST_RUNS = 3
"""Runs without which no spread can be estimated."""

USELESS = 1.0
"""A limit from which on a value may be lost altogether, so it is not judged."""

_LEAST_SPREAD = 0.1
"""The least spread of the logarithms: a few pairs of runs may be alike by chance."""


@dataclass(frozen=True)
class Tolerance:
    """The limits of a job.

    ``limits`` has a limit for each quantity that has noise; None where the noise is too large for a limit. The limit of
    single losses is stated however large it is: a loss then has to be finite, and the mean is judged. ``bound`` is
    the largest share of sound runs that exceed one limit that is no more than the largest difference seen, without any
    assumption on the noise.
    """

    limits: Mapping[Quantity, float | None]
    false_alarm: float
    bound: float

    @property
    def loss(self) -> float | None:
        """The limit of single losses."""
        return self.limits.get(LOSS)

    @property
    def mean(self) -> float | None:
        """The limit of the mean loss after the recovery."""
        return self.limits.get(MEAN)

    @property
    def is_useless(self) -> bool:
        """Whether no limit would tell a sound run from any other."""
        judged = [quantity for quantity, limit in self.limits.items() if limit is not None and limit < USELESS]
        return not judged or self.limits.get(LOSS, 0.0) is None

    def patterns(self) -> list[str]:
        """Return the patterns of parameters, the special ones first, since the first that fits counts."""
        patterns = {quantity.pattern for quantity in self.limits if quantity.pattern}
        return sorted(patterns, key=lambda pattern: (pattern.startswith("*"), -len(pattern), pattern))


def tolerance_of(noise: Noise, false_alarm: float) -> Tolerance:
    """Return the limits that a share ``false_alarm`` of sound runs exceeds, in one quantity or more."""
    if noise.runs < LEAST_RUNS:
        raise ValueError(f"{noise.runs} runs, {LEAST_RUNS} are needed")
    tail = false_alarm / max(1, len(noise.largest))
    common = _common_spread(noise)
    limits = {
        quantity: _limit_of_mean(noise, tail)
        if quantity == MEAN
        else _limit(quantity, values, noise.runs, tail, common)
        for quantity, values in sorted(noise.largest.items())
    }
    return Tolerance(limits, false_alarm, 2 / (noise.runs + 2))


def _limit_of_mean(noise: Noise, tail: float) -> float | None:
    """Return the limit for the mean losses of all ranks, the largest of what the ranks need."""
    largest = max(noise.largest[MEAN])
    quantile = upper_quantile(tail / 2 / max(1, len(noise.means)), noise.runs - 1)
    for means in noise.means.values():
        least = min(map(abs, means))
        spread = math.sqrt(math.fsum((mean - math.fsum(means) / len(means)) ** 2 for mean in means) / (len(means) - 1))
        largest = max(largest, quantile * spread * math.sqrt(2) / least if least else math.inf)
    return _useful(largest)


def _limit(quantity: Quantity, values: Sequence[float], runs: int, tail: float, common: float) -> float | None:
    if not all(map(math.isfinite, values)):
        return None
    logs = [math.log(value) for value in values if value > 0]
    mean = math.fsum(logs) / len(logs)
    spread = max(_spread(logs, runs), common)
    bound = mean + upper_quantile(tail, runs - 1) * spread * math.sqrt(1 + 2 / runs)
    limit = max(math.exp(min(bound, 700.0)), max(values))
    return _rounded_up(limit) if quantity == LOSS else _useful(limit)


def _useful(limit: float) -> float | None:
    """Return the limit as it is written; None where that is too large to tell anything."""
    return None if not limit < USELESS or (rounded := _rounded_up(limit)) >= USELESS else rounded


def _spread(logs: Sequence[float], runs: int) -> float:
    """Return the standard deviation of one pair, corrected for pairs that share a run.

    The variance of all pairs is too small by the covariance of pairs that share a run, at most half of the variance.
    """
    if len(logs) < 2:
        return 0.0
    mean = math.fsum(logs) / len(logs)
    variance = math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    pairs = runs * (runs - 1) / 2
    return math.sqrt(variance / (1 - (runs - 2) / (pairs - 1)))


def _common_spread(noise: Noise) -> float:
    """Return the least spread for every quantity: a quantity with few differing pairs takes that of the others."""
    spreads = [
        _spread([math.log(value) for value in values if value > 0], noise.runs)
        for values in noise.largest.values()
        if all(map(math.isfinite, values))
    ]
    known = [spread for spread in spreads if spread > 0]
    middle = sorted(known)[len(known) // 2] if known else 0.0
    return max(middle, _LEAST_SPREAD)


def _rounded_up(limit: float) -> float:
    """Return the limit with two digits, and never less than it."""
    digits = 1 - math.floor(math.log10(limit))
    rounded = math.ceil(limit * 10**digits) / 10**digits
    return float(f"{rounded:.2g}")
