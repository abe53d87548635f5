"""Quantiles of Student's t distribution, by the standard library."""

from __future__ import annotations

import math

_TERMS = 500
_TINY = 1e-300


def upper_quantile(tail: float, freedom: int) -> float:
    """Return the value that a variable with ``freedom`` degrees of freedom exceeds with probability ``tail`` < 0.5."""
    low, high = 0.0, 1.0
    while _tail(high, freedom) > tail:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _tail(middle, freedom) > tail else (low, middle)
    return high


def _tail(value: float, freedom: int) -> float:
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return max(0.0, min(1.0, x))
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    # Lentz's method, which is stable where single convergents overflow.
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * result


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
