"""The measure of growth tells the square from proportion."""

from __future__ import annotations

import re

from tests.kit.growing_cost import MOST_GROWTH, TIMES, growth

SHORT, LONG = ("ab" * (size // 2) for size in (1_000, 1_000 * TIMES))


def test_an_expression_that_looks_back_from_every_place_is_told_from_one_that_does_not() -> None:
    assert growth(re.compile("a[ab]*x").search, SHORT, LONG) > MOST_GROWTH
    assert growth(re.compile("a[ab]?x").search, SHORT * 50, LONG * 50) < MOST_GROWTH
