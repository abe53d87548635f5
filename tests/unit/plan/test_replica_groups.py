"""Replica groups come out as the vendor's documents show them, and as an independent model of the ranks does."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.plan.topology.errors import TopologyError
from chaos.plan.topology.layout import Position, layout_of, replica_groups
from chaos.scenario.models.scenario import Cluster


def cluster(ranks: int, nodes: int = 1, **parallel: Any) -> Cluster:
    return Cluster.model_validate({"ranks": ranks, "nodes": nodes, "parallel": parallel or None})


def groups_of(ranks: int, **parallel: Any) -> list[list[int]]:
    return [list(group) for group in replica_groups(layout_of(cluster(ranks, **parallel)))]


def by_holdings(stages: int, data: int, model: int, shards: int | None) -> list[list[int]]:
    """Groups by brute force: give every rank the slices that it holds, and collect ranks with equal slices.

    Walks the device matrix instead of computing ranks from positions. ``shards`` is None without optimizer
    parallelism.
    """
    matrix = np.arange(stages * data * model).reshape(stages, data, model)
    holders: dict[tuple[object, ...], list[int]] = {}
    for stage, column in itertools.product(range(stages), range(model)):
        weights = ("weights", stage, column)
        slices = itertools.cycle([("optimizer", part) for part in range(shards or 1)])
        for rank in matrix[stage, :, column]:
            holders.setdefault((weights, next(slices)), []).append(int(rank))
    return sorted(sorted(ranks) for ranks in holders.values())


def test_the_documents_layout_without_optimizer_parallelism() -> None:
    found = groups_of(8, enable_parallel_optimizer=False, data_parallel=2, model_parallel=4, pipeline_stage=1)
    assert found == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_the_documents_layout_with_optimizer_parallelism() -> None:
    found = groups_of(
        8, enable_parallel_optimizer=True, optimizer_weight_shard_size=2, data_parallel=4, model_parallel=2
    )
    assert found == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_the_documents_example_with_eight_workers() -> None:
    found = groups_of(8, enable_parallel_optimizer=True, optimizer_weight_shard_size=4, data_parallel=8)
    assert found == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_pure_data_parallelism_is_the_default_and_makes_one_group() -> None:
    assert groups_of(4) == [[0, 1, 2, 3]]


def test_pipeline_stages_never_share_a_group() -> None:
    assert groups_of(8, data_parallel=2, model_parallel=2, pipeline_stage=2) == [[0, 2], [1, 3], [4, 6], [5, 7]]


@pytest.mark.parametrize(
    ("ranks", "parallel", "groups"),
    [
        (4, {"data_parallel": 4, "shard": "full"}, [[0], [1], [2], [3]]),
        (4, {"data_parallel": 4, "shard": "full", "copies": 2}, [[0, 2], [1, 3]]),
        (8, {"data_parallel": 4, "model_parallel": 2, "shard": "full", "copies": 2}, [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (4, {"data_parallel": 4, "shard": "optimizer"}, [[0, 1, 2, 3]]),
        (4, {"data_parallel": 2, "model_parallel": 2, "shard": "optimizer"}, [[0, 2], [1, 3]]),
    ],
)
def test_shards_of_pytorch_leave_the_ranks_with_the_same_shards_or_weights(
    ranks: int, parallel: dict[str, Any], groups: list[list[int]]
) -> None:
    assert groups_of(ranks, **parallel) == groups


@pytest.mark.parametrize(
    ("parallel", "key"),
    [
        ({"copies": 2}, "parallel.copies"),
        ({"shard": "full", "copies": 3}, "parallel.copies"),
        ({"shard": "full", "enable_parallel_optimizer": True}, "parallel.shard"),
    ],
)
def test_shards_that_do_not_add_up_are_refused(parallel: dict[str, Any], key: str) -> None:
    with pytest.raises(TopologyError) as refused:
        layout_of(cluster(4, data_parallel=4, **parallel))
    assert refused.value.key == key


def test_optimizer_parallelism_without_a_size_leaves_no_replica() -> None:
    assert groups_of(4, data_parallel=4, enable_parallel_optimizer=True) == [[0], [1], [2], [3]]


def test_one_optimizer_shard_is_no_sharding() -> None:
    assert groups_of(4, data_parallel=4, enable_parallel_optimizer=True, optimizer_weight_shard_size=1) == [
        [0, 1, 2, 3]
    ]


sizes = st.integers(1, 6)


@given(stages=sizes, copies=sizes, shards=sizes, model=sizes, sharded=st.booleans())
def test_groups_agree_with_the_holdings_of_every_rank(
    stages: int, copies: int, shards: int, model: int, sharded: bool
) -> None:
    data = copies * shards
    found = groups_of(
        stages * data * model,
        data_parallel=data,
        model_parallel=model,
        pipeline_stage=stages,
        enable_parallel_optimizer=sharded,
        optimizer_weight_shard_size=shards if sharded else None,
    )
    assert found == by_holdings(stages, data, model, shards if sharded else None)


@given(stages=sizes, data=sizes, model=sizes)
def test_positions_agree_with_the_device_matrix(stages: int, data: int, model: int) -> None:
    layout = layout_of(cluster(stages * data * model, data_parallel=data, model_parallel=model, pipeline_stage=stages))
    matrix = np.arange(layout.ranks).reshape(stages, data, model)
    for index in np.ndindex(stages, data, model):
        assert layout.position(int(matrix[index])) == Position(*index)
    for stage in range(stages):
        assert list(layout.stage_ranks(stage)) == matrix[stage].ravel().tolist()


def test_nodes_hold_ranks_evenly_and_in_order() -> None:
    layout = layout_of(cluster(8, nodes=4))
    assert [list(layout.node_ranks(node)) for node in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("wrong", "key", "message"),
    [
        (
            {"ranks": 4, "parallel": {"data_parallel": 3}},
            "parallel",
            "data_parallel 3 x model_parallel 1 x pipeline_stage 1 is 3, but the cluster has 4 ranks",
        ),
        ({"ranks": 4, "nodes": 3}, "nodes", "4 ranks cannot be spread evenly over 3 nodes"),
        (
            {
                "ranks": 4,
                "parallel": {
                    "data_parallel": 4,
                    "enable_parallel_optimizer": True,
                    "optimizer_weight_shard_size": 3,
                },
            },
            "parallel.optimizer_weight_shard_size",
            "optimizer_weight_shard_size 3 does not divide data_parallel 4",
        ),
        (
            {"ranks": 4, "parallel": {"data_parallel": 4, "optimizer_weight_shard_size": 2}},
            "parallel.optimizer_weight_shard_size",
            "optimizer_weight_shard_size 2 has no effect while enable_parallel_optimizer is false",
        ),
    ],
)
def test_sizes_that_do_not_add_up_are_refused_by_key(wrong: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(TopologyError) as error:
        layout_of(Cluster.model_validate(wrong))
    assert (error.value.key, error.value.message) == (key, message)
    assert error.value.hint
