"""The quantiles are those of the tables, and limits hold the stated share where the noise is as assumed."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from chaos.calibration.noise import LOSS, Noise, Quantity
from chaos.calibration.student import upper_quantile
from chaos.calibration.tolerance import tolerance_of


@pytest.mark.parametrize(
    ("tail", "freedom", "value"),
    [
        (0.05, 1, 6.3138),
        (0.025, 4, 2.7764),
        (0.01, 4, 3.7469),
        (0.001, 4, 7.1732),
        (0.005, 7, 3.4995),
        (0.025, 30, 2.0423),
        (0.0005, 10, 4.5869),
        (0.01, 99, 2.3646),
    ],
)
def test_the_quantile_is_that_of_the_tables(tail: float, freedom: int, value: float) -> None:
    assert upper_quantile(tail, freedom) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("of_runs", [1.0, 0.0])
def test_a_new_pair_exceeds_a_limit_no_more_often_than_stated(runs: int, of_runs: float) -> None:
    source, beyond, trials = random.Random(1), 0, 400
    for _ in range(trials):
        effects = [of_runs * source.gauss(0, 0.3) for _ in range(runs + 2)]
        pairs = {
            pair: math.exp(sum(effects[run] for run in pair) + (1 - of_runs) * source.gauss(0, 0.3) - 9)
            for pair in combinations(range(runs + 2), 2)
        }
        known = [value for pair, value in pairs.items() if max(pair) < runs]
        limit = tolerance_of(Noise(runs, {LOSS: known}), 0.1).loss
        assert limit is not None
        beyond += pairs[runs, runs + 1] > limit
    assert beyond / trials <= 0.1


@pytest.mark.parametrize("largest", [0.996, 1.2])
def test_no_limit_is_one_or_more_as_it_is_written(largest: float) -> None:
    sample = Quantity("sample", "*bias")
    assert tolerance_of(Noise(3, {sample: [largest] * 3}), 0.01).limits[sample] is None
    # The bound is above 0.9, and two digits of it are 1.
    rounded = tolerance_of(Noise(3, {sample: [0.801] * 3}), 0.2).limits[sample]
    assert rounded is None or rounded < 1
