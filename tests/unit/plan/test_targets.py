"""Every kind of target resolves to the ranks it means, and one that the layout does not have is refused by key."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.plan.topology.errors import TopologyError
from chaos.plan.topology.layout import layout_of, replica_groups
from chaos.plan.topology.targets import Resolved, resolve
from chaos.scenario.models.fault import Target
from chaos.scenario.models.scenario import Cluster

LAYOUT = layout_of(
    Cluster.model_validate(
        {"ranks": 8, "nodes": 4, "parallel": {"data_parallel": 2, "model_parallel": 2, "pipeline_stage": 2}}
    )
)
GROUPS = replica_groups(LAYOUT)


def never() -> int:
    raise AssertionError("no seed may be drawn")


def target(
    written: dict[str, Any], controller: Literal["rank 0", "outside"] = "rank 0", seed: int | None = None
) -> Resolved:
    draw = never if seed is None else lambda: seed
    return resolve(Target.model_validate(written), LAYOUT, GROUPS, controller, draw)


@pytest.mark.parametrize(
    ("written", "ranks"),
    [
        ({"rank": 7}, (7,)),
        ({"ranks": (5, 2)}, (2, 5)),
        ({"node": 1}, (2, 3)),
        ({"replica_group": 1}, (1, 3)),
        ({"role": "last_stage"}, (4, 5, 6, 7)),
        ({"role": "controller"}, (0,)),
    ],
)
def test_a_target_resolves_to_its_ranks_in_order(written: dict[str, Any], ranks: tuple[int, ...]) -> None:
    assert target(written) == Resolved(ranks, None)


def test_a_random_target_without_a_seed_draws_one_and_returns_it() -> None:
    drawn = target({"random": {"count": 3}}, seed=12)
    assert drawn.seed == 12
    assert len(set(drawn.ranks)) == 3
    assert drawn == target({"random": {"count": 3, "seed": 12}})


def test_a_seed_draws_the_same_ranks_however_the_list_is_written() -> None:
    drawn = target({"random": {"count": 2, "seed": 3, "among": (6, 1, 4, 5)}})
    assert drawn == target({"random": {"count": 2, "seed": 3, "among": (1, 4, 5, 6)}})
    assert set(drawn.ranks) < {1, 4, 5, 6}


def test_a_seed_draws_the_same_ranks_in_every_version() -> None:
    assert target({"random": {"count": 3, "seed": 42}}).ranks == (0, 1, 5)


@given(seed=st.integers(0, 2**63), count=st.integers(1, 4))
def test_random_ranks_come_from_the_pool_and_are_distinct(seed: int, count: int) -> None:
    ranks = target({"random": {"count": count, "seed": seed, "among": (1, 3, 5, 7)}}).ranks
    assert len(set(ranks)) == count
    assert set(ranks) <= {1, 3, 5, 7}
    assert list(ranks) == sorted(ranks)


@pytest.mark.parametrize(
    ("written", "key", "message"),
    [
        ({"rank": 8}, "rank", "there is no rank 8 of 8"),
        ({"ranks": (1, 9)}, "ranks", "there is no rank 9 of 8"),
        ({"ranks": (1, 1)}, "ranks", "rank 1 is listed twice"),
        ({"node": 4}, "node", "there is no node 4 of 4"),
        ({"replica_group": 4}, "replica_group", "there is no replica group 4 of 4"),
        ({"random": {"count": 9}}, "random.count", "9 ranks cannot be drawn from 8"),
        ({"random": {"count": 2, "among": (1,)}}, "random.count", "2 ranks cannot be drawn from 1"),
        ({"random": {"among": (11,)}}, "random.among", "there is no rank 11 of 8"),
        ({"rank": 1, "node": 0}, "node", "a target names exactly one thing to hit, this one names rank, node"),
        ({}, "", "a target names exactly one thing to hit, this one names none"),
    ],
)
def test_a_target_that_the_layout_does_not_have_is_refused(written: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(TopologyError) as error:
        target(written)
    assert (error.value.key, error.value.message) == (key, message)
    assert error.value.hint


def test_no_rank_is_the_controller_when_it_lives_outside() -> None:
    with pytest.raises(TopologyError, match="no rank hosts it") as error:
        target({"role": "controller"}, controller="outside")
    assert error.value.key == "role"
