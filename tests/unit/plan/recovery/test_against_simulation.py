"""The plan agrees with a brute-force model: ranks that step through their phases and block where one is missing."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from chaos.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

WALK = (
    "step.begin",
    "forward",
    "allreduce.enter",
    "optimizer.update",
    "step.end",
    "checkpoint.begin",
    "checkpoint.write",
    "checkpoint.end",
)
STEPS = 4


@dataclass
class Rank:
    """A rank that walks through the phases of every step and dies at the points where a fault waits for it."""

    deaths: set[tuple[int, str]]
    alive: bool = True
    complete: int = 0
    entered: int = 0
    todo: list[tuple[int, str]] = field(default_factory=lambda: list(itertools.product(range(1, STEPS + 1), WALK)))


def train(ranks: list[Rank], order: random.Random) -> None:
    """Let the ranks walk in any order until nobody can go on. The all-reduce lets pass when everyone has entered."""
    while True:
        able = [rank for rank in ranks if rank.alive and rank.todo and _may_pass(rank, ranks)]
        if not able:
            return
        rank = order.choice(able)
        step, phase = rank.todo.pop(0)
        if (step, phase) in rank.deaths:
            rank.alive = False
        elif phase == "allreduce.enter":
            rank.entered = step
        elif phase == "optimizer.update":
            rank.complete = step


def _may_pass(rank: Rank, ranks: list[Rank]) -> bool:
    step, phase = rank.todo[0]
    return phase != "optimizer.update" or all(other.entered >= step for other in ranks)


points = st.tuples(st.integers(1, STEPS), st.sampled_from(WALK))


def fault(rank: int, at: tuple[int, str]) -> dict[str, Any]:
    return {"kind": "kill", "target": {"rank": rank}, "trigger": {"step": at[0], "phase": at[1]}}


@given(first=points, second=points, seed=st.integers(0, 2**32))
@example(first=(2, "optimizer.update"), second=(3, "allreduce.enter"), seed=1)
def test_the_saved_step_is_where_the_survivors_stop(
    plan: Planner, first: tuple[int, str], second: tuple[int, str], seed: int
) -> None:
    ranks = [Rank(set()), Rank({first}), Rank({second}), Rank(set())]
    train(ranks, random.Random(seed))
    survivors = [rank for rank in ranks if rank.alive]
    stopped = {rank.complete for rank in survivors}
    try:
        found = plan(
            fault(1, first),
            fault(2, second),
            job={"steps": STEPS, "checkpoint_interval": 1},
        )
    except ScenarioError as error:
        unreached = len(survivors) > 2
        assert ("is never reached" in str(error)) == unreached
        assert unreached or stopped in ({0}, {STEPS})
        return
    assert len(survivors) == 2
    assert found.checkpoint is not None
    assert stopped == {found.checkpoint.step}


@given(at=points, seed=st.integers(0, 2**32))
@example(at=(2, "optimizer.update"), seed=1)
def test_an_online_repair_goes_on_after_the_last_step_that_the_others_complete(
    plan: Planner, at: tuple[int, str], seed: int
) -> None:
    ranks = [Rank(set()), Rank({at}), Rank(set())]
    train(ranks, random.Random(seed))
    stopped = {rank.complete for rank in ranks if rank.alive}
    try:
        found = plan(
            {**fault(1, at), "kind": "uce"},
            cluster={"ranks": 3},
            job={"steps": STEPS, "checkpoint_interval": 1, "protection": ("UCE",)},
        )
    except ScenarioError:
        assert at[0] == 1 or stopped == {STEPS}
        return
    assert stopped == {recovery.step for recovery in found.response.goes_on}


sizes = st.integers(1, 4)


@given(stages=sizes, copies=st.integers(2, 4), shards=sizes, model=sizes, sharded=st.booleans(), data=st.data())
def test_savers_are_the_lowest_survivors_that_hold_the_same_slices(
    plan: Planner, stages: int, copies: int, shards: int, model: int, sharded: bool, data: st.DataObject
) -> None:
    size = copies * shards
    matrix = np.arange(stages * size * model).reshape(stages, size, model)
    dead = data.draw(st.sets(st.integers(0, matrix.size - 1), min_size=1, max_size=6))
    holders: dict[tuple[int, int, int], list[int]] = {}
    for (stage, position, column), rank in np.ndenumerate(matrix):
        slice_held = position % shards if sharded else 0
        holders.setdefault((stage, column, slice_held), []).append(int(rank))
    expected = {tuple(ranks): [rank for rank in ranks if rank not in dead] for ranks in holders.values()}
    assume(all(expected.values()))

    found = plan(
        {"kind": "kill", "target": {"ranks": tuple(dead)}, "trigger": {"step": 3}},
        cluster={
            "ranks": matrix.size,
            "parallel": {
                "data_parallel": size,
                "model_parallel": model,
                "pipeline_stage": stages,
                "enable_parallel_optimizer": sharded,
                "optimizer_weight_shard_size": shards if sharded else None,
            },
        },
        job={"controller": "outside"},
    )
    assert set(found.layout.replica_groups) == set(expected)
    assert [group[0] for group in found.layout.replica_groups] == sorted(group[0] for group in expected)
    assert found.checkpoint is not None
    assert found.checkpoint.savers == tuple(min(expected[group]) for group in found.layout.replica_groups)
    assert [list(ranks) for ranks in found.checkpoint.entitled.values()] == [
        expected[group] for group in found.layout.replica_groups
    ]
    assert set(found.checkpoint.files) == set(found.checkpoint.savers)
