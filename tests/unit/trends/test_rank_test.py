"""The one-sided Mann-Whitney test: exact without ties, and by the normal approximation with them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from chaos.trends.rank_test import Stratum, lowest_p, p_longer, seconds_longer, share_longer


def against(newest: list[float], before: list[float]) -> list[Stratum]:
    """One stratum."""
    return [Stratum(newest, before)]


@pytest.mark.parametrize(("new", "old"), [(1, 1), (2, 3), (4, 3), (3, 7)])
def test_the_probability_is_the_share_of_all_orders(new: int, old: int) -> None:
    ranks = range(new + old)
    orders = list(combinations(ranks, new))
    wins = Counter(sum(a > b for a in order for b in ranks if b not in order) for order in orders)
    for order in orders:
        own = sum(a > b for a in order for b in ranks if b not in order)
        expected = sum(count for number, count in wins.items() if number >= own) / len(orders)
        found = p_longer(against([float(rank) for rank in order], [float(rank) for rank in ranks if rank not in order]))
        assert found == pytest.approx(expected)


def test_the_longest_times_of_all_have_the_lowest_probability() -> None:
    assert p_longer(against([5.0, 6.0], [1.0, 2.0, 3.0])) == pytest.approx(lowest_p([(2, 3)])) == pytest.approx(0.1)


def test_equal_times_speak_for_nothing() -> None:
    assert p_longer(against([0.0] * 10, [0.0] * 30)) == 1.0
    assert p_longer(against([], [1.0])) == p_longer(against([1.0], [])) == 1.0


def test_ties_count_half() -> None:
    # scipy.stats.mannwhitneyu(newest, before, alternative="greater", method="asymptotic")
    assert p_longer(against([3.0, 3.0, 4.0, 5.0], [1.0, 2.0, 2.0, 3.0, 4.0])) == pytest.approx(0.065793, abs=1e-6)


def test_an_outlier_moves_the_effect_by_little() -> None:
    before = [10.0, 10.1, 10.2, 10.3, 10.4]
    assert share_longer(against([11.5, 11.6, 11.7, 500.0], before)) == pytest.approx(0.14, abs=0.01)
    assert seconds_longer(against([11.5, 11.6, 11.7, 500.0], before)) == pytest.approx(1.45, abs=0.1)
    assert share_longer(against([1.0], [0.0])) == 0.0


def test_times_are_compared_within_their_stratum() -> None:
    apart = [Stratum([11.0, 12.0], [1.0, 2.0, 3.0]), Stratum([110.0, 120.0], [101.0, 102.0, 103.0])]
    assert p_longer(apart) == pytest.approx(lowest_p([(2, 3), (2, 3)])) == pytest.approx(0.01)
    assert share_longer([Stratum([2.0], [1.0]), Stratum([20.0], [10.0])]) == 1.0
    assert p_longer([Stratum([9.0], []), Stratum([], [1.0])]) == 1.0


def test_a_change_of_the_mix_of_machines_is_no_slowdown() -> None:
    fast, slow = Stratum([1.0, 2.0], [1.5, 2.5, 3.5, 0.5, 0.6]), Stratum([11.0, 12.0, 13.0, 14.0], [11.5, 13.5])
    mixed = Stratum([*fast.newest, *slow.newest], [*fast.before, *slow.before])
    assert p_longer([mixed]) < p_longer([fast, slow])
