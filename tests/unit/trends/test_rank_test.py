"""The one-sided Mann-Whitney test: exact without ties, and by the normal approximation with them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from chaos.trends.rank_test import lowest_p, p_longer, seconds_longer, share_longer


@pytest.mark.parametrize(("new", "old"), [(1, 1), (2, 3), (4, 3), (3, 7)])
def test_the_probability_is_the_share_of_all_orders(new: int, old: int) -> None:
    ranks = range(new + old)
    orders = list(combinations(ranks, new))
    wins = Counter(sum(a > b for a in order for b in ranks if b not in order) for order in orders)
    for order in orders:
        own = sum(a > b for a in order for b in ranks if b not in order)
        expected = sum(count for number, count in wins.items() if number >= own) / len(orders)
        found = p_longer([float(rank) for rank in order], [float(rank) for rank in ranks if rank not in order])
        assert found == pytest.approx(expected)


def test_the_longest_times_of_all_have_the_lowest_probability() -> None:
    assert p_longer([5.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx(lowest_p(2, 3)) == pytest.approx(0.1)


def test_equal_times_speak_for_nothing() -> None:
    assert p_longer([0.0] * 10, [0.0] * 30) == 1.0
    assert p_longer([], [1.0]) == p_longer([1.0], []) == 1.0


def test_ties_count_half() -> None:
    # scipy.stats.mannwhitneyu(newest, before, alternative="greater", method="asymptotic")
    assert p_longer([3.0, 3.0, 4.0, 5.0], [1.0, 2.0, 2.0, 3.0, 4.0]) == pytest.approx(0.065793, abs=1e-6)


def test_an_outlier_moves_the_effect_by_little() -> None:
    before = [10.0, 10.1, 10.2, 10.3, 10.4]
    assert share_longer([11.5, 11.6, 11.7, 500.0], before) == pytest.approx(0.14, abs=0.01)
    assert seconds_longer([11.5, 11.6, 11.7, 500.0], before) == pytest.approx(1.45, abs=0.1)
    assert share_longer([1.0], [0.0]) == 0.0
