"""A size of parallelism that the job kind does not know is refused by name, at its line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.points import PHASE_ORDER
from chaos.plan.traits import JobTraits

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

LIMITED = JobTraits(
    frozenset(PHASE_ORDER), "mindspore", most_stages=1, slices=frozenset({1, 2}), shards=frozenset({1, 2})
)
STAGES = {"ranks": 8, "parallel": {"data_parallel": 2, "model_parallel": 2, "pipeline_stage": 2}}
SLICES = {"ranks": 6, "parallel": {"data_parallel": 2, "model_parallel": 3}}
SHARDS = {
    "ranks": 8,
    "parallel": {"data_parallel": 8, "enable_parallel_optimizer": True, "optimizer_weight_shard_size": 4},
}


@pytest.mark.parametrize(
    ("key", "cluster", "said"),
    [
        ("pipeline_stage", STAGES, "job kind 'rehearsal' does not train in pipeline stages, but pipeline_stage is 2"),
        ("model_parallel", SLICES, "cannot slice its weights by model_parallel 3"),
        ("optimizer_weight_shard_size", SHARDS, "cannot slice its weights by optimizer_weight_shard_size 4"),
    ],
)
def test_a_size_that_the_kind_does_not_know_is_refused(
    plan: Planner, key: str, cluster: dict[str, Any], said: str
) -> None:
    assert plan(cluster=cluster).layout.replica_groups  # a kind without limits takes it
    plan.traits, plan.lines = LIMITED, {f"cluster.parallel.{key}": 7}
    text = plan.refused(cluster=cluster)
    assert "example.yaml:7:3: " in text
    assert said in text


def test_shards_of_pytorch_need_a_kind_that_trains_with_it(plan: Planner) -> None:
    cluster = {"ranks": 4, "parallel": {"data_parallel": 4, "shard": "full", "copies": 2}}
    plan.lines = {"cluster.parallel.shard": 7}
    text = plan.refused(cluster=cluster)
    assert "example.yaml:7:3: job kind 'rehearsal' does not train with PyTorch" in text
    plan.traits = replace(LIMITED, shards_state=True)
    assert plan(cluster=cluster, job={"script": "own.py"}).layout.shard == "full"


@pytest.mark.parametrize("cluster", [SLICES, SHARDS])
def test_a_script_of_the_scenario_slices_as_it_likes(plan: Planner, cluster: dict[str, Any]) -> None:
    plan.traits = LIMITED
    assert plan(cluster=cluster, job={"script": "own.py"}).layout.replica_groups
    assert "pipeline stages" in plan.refused(cluster=STAGES, job={"script": "own.py"})


def test_a_kind_with_stages_takes_as_many_as_it_has(plan: Planner) -> None:
    plan.traits = replace(LIMITED, most_stages=2)
    assert plan(cluster=STAGES).layout.loss_ranks == (4, 7)
    four = {"ranks": 8, "parallel": {"data_parallel": 2, "pipeline_stage": 4}}
    assert "trains in 2 pipeline stages at most, but pipeline_stage is 4" in plan.refused(cluster=four)


def test_a_mechanism_or_an_aid_that_the_kind_does_not_have_is_refused(plan: Planner) -> None:
    limits = {"mechanisms": frozenset({"TTP", "ARF"}), "lacks": {"job.graph": "compiles no graphs"}}
    plan.traits = JobTraits(frozenset(PHASE_ORDER), "mindspore", **limits)  # type: ignore[arg-type]
    plan.lines = {"job.protection": 4, "job.graph": 5}
    assert plan().layout.replica_groups
    text = plan.refused(job={"protection": ["TTP", "UCE"], "graph": True})
    assert "example.yaml:4:3: " in text
    assert "job kind 'rehearsal' does not take part in UCE" in text
    assert "it knows TTP, ARF" in text
    assert "example.yaml:5:3: " in text
    assert "job kind 'rehearsal' compiles no graphs" in text


def test_a_kind_that_needs_its_own_launcher_takes_no_other(plan: Planner) -> None:
    plan.lines = {"job.command": 6}
    own = {"command": ["mpirun", "-n", "4"]}
    text = plan.refused(job=own)
    assert "example.yaml:6:3: " in text
    assert "job kind 'rehearsal' takes no other launcher: a launcher of its own starts its ranks" in text
    plan.traits = replace(plan.traits, own_launcher=True)
    assert plan(job=own).layout.ranks == 4
    assert "job.agent needs the job kind's own launcher" in plan.refused(job={**own, "agent": True})
