"""Samples of parameters: the same places in every process, bounded in size, and only where they are asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chaos.agent.digests import MOST_VALUES, MOST_VALUES_OF_A_STEP, Digests, Sampler, places
from chaos.agent.record import Record
from chaos.evidence.tolerances.samples import difference, read_sample
from tests.unit.agent.conftest import Events


def test_a_sample_has_the_norm_the_mean_and_values() -> None:
    text = Sampler(1).samples([("w", np.array([[3.0, 4.0]], "float32"))])["w"]
    sample = read_sample(text)
    assert sample is not None
    assert (sample.count, sample.norm, sample.mean, sample.values) == (2, 5.0, 3.5, (3.0, 4.0))


def test_two_processes_with_one_seed_choose_the_same_places_and_another_seed_others() -> None:
    array = np.arange(1000, dtype="float32")
    first, second, other = (Sampler(seed).samples([("w", array)])["w"] for seed in (1, 1, 2))
    assert first == second != other


def test_the_places_are_fixed_for_all_releases() -> None:
    assert places(1, "w", 1000, 4) == [88, 282, 556, 759]


@pytest.mark.parametrize("count", [1, 100, 2000, 9000])
def test_the_samples_of_a_step_are_bounded(count: int) -> None:
    array = np.full(5000, -1.23456789e-30, "float32")
    taken = Sampler(1).samples([(f"layer{number}.weight", array) for number in range(count)])
    assert len(taken) == count
    values = [len(text.split()) - 3 for text in taken.values()]
    assert max(values) <= MOST_VALUES and sum(values) <= max(count, MOST_VALUES_OF_A_STEP)
    assert max(map(len, taken.values())) < 20 * (MOST_VALUES + 3)


def test_values_that_are_not_finite_and_other_types_are_written_so_that_they_can_be_read() -> None:
    arrays = [
        ("nan", np.array([math.nan, math.inf], "float32")),
        ("flag", np.array(True)),
        ("share", np.array([7.0], "float16")),
        ("text", np.array(["a"])),
        ("number", -0.5),
        ("nothing", None),
    ]
    taken = Sampler(1).samples(arrays)
    assert set(taken) == {"nan", "flag", "share", "number"}
    samples = {name: read_sample(text) for name, text in taken.items()}
    assert samples["nan"] is not None and not samples["nan"].finite
    assert samples["share"] is not None and samples["share"].values == (7.0,)


def test_a_large_parameter_is_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(10, dtype="float32")
    whole = Sampler(1).samples([("w", array)])
    monkeypatch.setattr("chaos.agent.digests._BLOCK", 3)
    assert Sampler(1).samples([("w", array)]) == whole


def test_events_have_samples_only_with_a_sampler(record: Record, events: Events) -> None:
    for sampler in (None, Sampler(1)):
        digests = Digests(record, 1, sampler=sampler)
        digests.write_initial([("w", np.ones(3, "float32"))])
        digests.write(1, outputs=None, batch=None, parameters=[("w", np.ones(3, "float32"))])
    bare, sampled = events("digest")
    assert "samples" not in bare.data and sampled.data["samples"] == {"w": "3 1.73205081 1 1 1 1"}
    assert [set(event.data) for event in events("initial")] == [{"parameters"}, {"parameters", "samples"}]
    assert bare.data["parameters"] == sampled.data["parameters"]


def test_a_difference_is_relative_to_the_norm_of_the_second() -> None:
    ours, theirs = (read_sample(text) for text in ("4 2.2 1.1 1 1 1 1.4", "4 2 1 1 1 1 1"))
    assert ours is not None and theirs is not None
    apart = difference(ours, theirs)
    assert apart is not None and apart.norm == pytest.approx(0.1) and apart.sample == pytest.approx(0.2)


def test_a_parameter_that_was_zero_is_infinitely_far_from_one_that_is_not() -> None:
    ours, theirs = (read_sample(text) for text in ("2 1 0.5 1 0", "2 0 0 0 0"))
    assert ours is not None and theirs is not None
    apart, same = difference(ours, theirs), difference(theirs, theirs)
    assert apart is not None and math.isinf(apart.norm) and math.isinf(apart.sample)
    assert same is not None and (same.norm, same.sample) == (0, 0)
