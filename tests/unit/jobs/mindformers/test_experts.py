"""A plan of a job with experts goes by the ranks that hold the same ones, and is made only where these are known."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from chaos.jobs.mindformers.experts import Mesh, Reading

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

SIZES = "  data_parallel: 4\n  model_parallel: 1\n  pipeline_stage: 1\n"
NOT_LEGACY = "use_legacy: False\nrun_mode"
SHARDED = (
    "parallel:\n  enable_parallel_optimizer: True\n  parallel_optimizer_config: {optimizer_weight_shard_size: 2}\n"
)


def sized(room: Room, data: int, model: int, experts: int, stages: int = 1, *, more: str = "") -> Room:
    written = f"  data_parallel: {data}\n  model_parallel: {model}\n  pipeline_stage: {stages}\n"
    return room.change(SIZES, f"{written}  expert_parallel: {experts}\n{more}")


def spread(room: Room, *sizes: int, more: str = "") -> Room:
    """A model that is not legacy."""
    return sized(room.change("run_mode", NOT_LEGACY), *sizes, more=more)


def legacy(room: Room, data: int, model: int, experts: int, moe: str) -> Room:
    """A legacy model with this ``moe_config``."""
    return sized(room.change("run_mode", f"moe_config: {{{moe}}}\nrun_mode"), data, model, experts)


def killed(room: Room, *ranks: int) -> Room:
    return room.change_scenario("target: {rank: 1}", f"target: {{ranks: {list(ranks)}}}")


DEEPSEEK = """\
model:
  model_config:
    model_type: deepseek_v3
    num_hidden_layers: 61
    first_k_dense_replace: 3
    pp_interleave_num: 2
    offset: [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, -2]]
"""


def test_a_job_like_deepseek_v3_is_planned_with_the_ranks_that_hold_the_same_experts(room: Room) -> None:
    plan = spread(room, 16, 8, 32, 8).change("callbacks:", f"{DEEPSEEK}callbacks:").plan()
    assert plan.response.mechanism == "TTP"
    assert plan.layout.replica_groups[:2] == ((0, 32, 64, 96), (1, 33, 65, 97))
    assert plan.layout.replica_groups[-1] == (927, 959, 991, 1023)
    assert len(plan.layout.replica_groups) == 256
    assert plan.checkpoint is not None
    assert plan.checkpoint.savers[:3] == (0, 33, 2)
    assert plan.checkpoint.entitled[33] == (33, 65, 97)


def test_the_plan_names_the_copies_of_dense_weights_and_of_experts(room: Room) -> None:
    reasons = spread(room, 8, 1, 4).plan().explanation.reasons
    line = 1 + room.configuration.splitlines().index("  expert_parallel: 4")
    message = f"With expert_parallel 4 (job.yaml:{line}) dense weights have 8 copies, and whole experts have 2 copies"
    (remark,) = (reason for reason in reasons if reason.startswith(message))
    assert "[0, 4] hold the same ones" in remark
    assert "No job with experts was seen on hardware" in remark
    assert any(
        reason.startswith("4 replica groups of 2 ranks: fewer ranks hold the same experts") for reason in reasons
    )


def test_losing_both_copies_of_an_expert_is_no_recovery_though_dense_weights_are_left(room: Room) -> None:
    assert "every rank of replica group [1, 5] is lost" in killed(spread(room, 8, 1, 4), 1, 5).refused()
    plan = room.change_scenario("faults:", "expect: {checkpoint: none}\nfaults:").plan()
    assert plan.response.mechanism == "none"
    assert plan.checkpoint is None


def test_losing_one_copy_of_each_of_two_experts_is_recovered(room: Room) -> None:
    plan = killed(spread(room, 8, 1, 4), 1, 6).plan()
    assert plan.response.mechanism == "TTP"
    assert plan.checkpoint is not None
    assert plan.checkpoint.savers == (0, 5, 2, 3)


def test_experts_without_a_second_copy_are_refused_and_named(room: Room) -> None:
    refused = spread(room, 4, 1, 4).refused()
    line = 1 + room.configuration.splitlines().index("  expert_parallel: 4")
    assert f"job.yaml:{line}:3: TTP (scenario.yaml:7) needs replicas of dense weights and of experts. Dense" in refused
    assert "Dense weights have 4 copies, which is enough; with expert_parallel 4 whole" in refused
    assert "whole experts have 1 copy, which leaves no replica" in refused


def test_dense_weights_without_a_second_copy_are_refused_as_in_every_plan(room: Room) -> None:
    refused = spread(room, 1, 4, 2).refused()
    assert "no rank has a replica: data_parallel is 1" in refused
    assert "experts" not in refused


@pytest.mark.parametrize(
    ("moe", "group"),
    [
        ("expert_num: 8, use_gmm: True, shared_expert_num: 1", (0, 4, 8, 12)),  # moev3.py: whole experts
        ("expert_num: 8", (0, 8)),  # moe.py: sliced over the model-parallel ranks
        ("expert_num: 8, expert_model_parallel: 2", (0, 8)),
    ],
)
def test_a_legacy_model_has_the_layers_that_its_configuration_chooses(
    room: Room, moe: str, group: tuple[int, ...]
) -> None:
    assert legacy(room, 8, 2, 4, moe).plan().layout.replica_groups[0] == group


@pytest.mark.parametrize(
    ("moe", "hint"),
    [
        ("expert_num: 8, use_gmm: True", "write shared_expert_num beside use_gmm"),
        ("expert_num: 8, expert_model_parallel: 1", "leave expert_model_parallel out"),
        ("use_gmm: True", "write moe_config.expert_num and moe_config.use_gmm"),
    ],
)
def test_layers_that_would_differ_in_their_replicas_are_refused_with_what_each_would_do(
    room: Room, moe: str, hint: str
) -> None:
    refused = legacy(room, 8, 2, 4, moe).refused()
    assert (
        "is left open which ranks hold the same experts: whole experts (moev3.py) have 4 copies: [0, 4, 8, 12]"
        in refused
    )
    assert "sliced experts (moe.py) have 2 copies: [0, 8] hold the same ones" in refused
    assert hint in refused


def test_layers_that_agree_in_their_replicas_are_planned(room: Room) -> None:
    # Without model parallelism a sliced expert is whole.
    assert legacy(room, 8, 1, 4, "expert_num: 8, use_gmm: True").plan().layout.replica_groups[0] == (0, 4)


def test_a_model_that_may_have_no_experts_is_refused_with_all_readings(room: Room) -> None:
    refused = sized(room, 8, 2, 4).change("parallel_config:", f"{SHARDED}parallel_config:").refused()
    assert "Dense weights have 4 copies, which is enough" in refused
    assert "whole experts (moev3.py) have 2 copies: [0, 8] hold the same ones" in refused
    assert "sliced experts (moe.py) have 1 copy, which leaves no replica" in refused
    assert "the weights of a model without experts have 4 copies: [0, 4, 8, 12] hold the same weights" in refused


def test_optimizer_shards_take_copies_of_experts_too(room: Room) -> None:
    plan = spread(room, 8, 2, 4).change("parallel_config:", f"{SHARDED}parallel_config:").plan()
    assert plan.layout.replica_groups[0] == (0, 8)
    refused = room.change("expert_parallel: 4", "expert_parallel: 8").refused()
    assert "Dense weights have 4 copies, which is enough" in refused
    assert "whole experts have 1 copy" in refused


def test_optimizer_shards_leave_legacy_experts_whole_that_they_do_not_divide(room: Room) -> None:
    legacy(room, 8, 1, 4, "expert_num: 4").change("parallel_config:", f"{SHARDED}parallel_config:")
    assert room.plan().layout.replica_groups[0] == (0, 4)
    assert "sliced experts (moe.py) have 1 copy" in room.change("expert_num: 4", "expert_num: 8").refused()


def test_optimizer_shards_that_do_not_divide_the_copies_are_refused(room: Room) -> None:
    sharded = SHARDED.replace("size: 2", "size: 3")
    refused = spread(room, 12, 1, 3).change("parallel_config:", f"{sharded}parallel_config:").refused()
    assert "whole experts have 4 copies: [0, 3, 6, 9] hold the same ones; whole experts have 1 copy" in refused
    assert "let optimizer_weight_shard_size divide the copies" in refused


def test_a_stage_that_may_have_no_experts_is_refused(room: Room) -> None:
    refused = spread(room, 16, 8, 32, 8).refused()
    assert "the weights of a pipeline stage without experts have 16 copies" in refused
    assert "write num_layers, offset and first_k_dense_replace in model.model_config" in refused
    room.change("callbacks:", f"{DEEPSEEK}callbacks:").change("offset: [[1, 1", "offset: [[0, 1")
    assert "a pipeline stage without experts" in room.refused()  # 3 layers, all dense


def test_stages_do_not_matter_where_experts_have_the_replicas_of_dense_weights(room: Room) -> None:
    assert spread(room, 4, 4, 4, 2).plan().layout.replica_groups[0] == (0, 4, 8, 12)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("use_legacy: False\n", "", "legacy models differ in how they spread them beside context_parallel"),
        (
            "parallel_config:",
            "parallel: {parallel_mode: 2}\nparallel_config:",
            "in parallel_mode 2 MindSpore decides it",
        ),
        (
            "callbacks:",
            "model: {model_config: {use_3d_tensor_parallel: True}}\ncallbacks:",
            "use_3d_tensor_parallel slices them another way",
        ),
        ("expert_parallel: 4", "expert_parallel: 3", "expert_parallel 3 divides no number of ranks"),
    ],
)
def test_a_layout_that_is_not_known_is_refused_and_its_neighbour_is_not(
    room: Room, old: str, new: str, why: str
) -> None:
    spread(room, 8, 2, 4, more="  context_parallel: 2\n")
    assert room.plan().layout.replica_groups[0] == tuple(range(0, 32, 4))
    assert f"is not planned by this version: {why}" in room.change(old, new).refused()


def test_a_release_whose_layers_were_not_read_is_refused(room: Room) -> None:
    assert (
        "models of MindFormers 1.6 that are not legacy were not read"
        in spread(room.checkout("1.6.0"), 8, 1, 4).refused()
    )


def test_sets_that_overlap_leave_no_replica(room: Room) -> None:
    refused = spread(room, 4, 3, 2).refused()
    assert "whole experts have 6 copies: [0, 2, 4, 6, 8, 10] hold the same ones, but such sets overlap" in refused


def test_without_a_mechanism_that_needs_replicas_only_what_is_sure_is_compared(room: Room) -> None:
    room.change_scenario("protection: [TTP]", "protection: []")
    plan = legacy(room, 8, 2, 4, "expert_num: 8, use_gmm: True").plan()
    assert plan.layout.replica_groups[0] == (0, 8)  # by moev3.py 4 and 12 hold the same, too
    assert any(
        "only ranks that hold the same state by every reading are compared" in text for text in plan.explanation.reasons
    )


@pytest.mark.parametrize("mode", ["0", "HYBRID_PARALLEL"])
def test_a_mode_that_slices_nothing_spreads_no_experts(room: Room, mode: str) -> None:
    room.change_scenario("protection: [TTP]", "protection: []")
    plan = sized(room, 4, 1, 2).change("parallel_config:", f"parallel: {{parallel_mode: {mode}}}\nparallel_config:")
    assert not any("experts" in reason for reason in plan.plan().explanation.reasons)


@pytest.mark.parametrize(
    ("own", "shards", "stride"),
    [(8, 1, 8), (2, 1, 4), (4, 2, 8), (16, 2, 16), (3, 1, 64), (12, 3, 64)],
)
def test_replicas_are_the_smallest_of_sets_that_lie_within_each_other(own: int, shards: int, stride: int) -> None:
    mesh = Mesh(data=16, model=4, context=1, experts=4, shards=shards)
    assert Reading("experts", mesh, own).stride == stride


def holders(ranks: int, *dimensions: int, shards: int) -> list[frozenset[int]]:
    """Sets of ranks with the same slice, by a device matrix of which the last dimensions slice a weight."""
    matrix = np.arange(ranks).reshape(-1, int(np.prod(dimensions)))
    return [frozenset(map(int, matrix[part::shards, one])) for one in range(matrix.shape[1]) for part in range(shards)]


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("shards", [1, 2])
def test_replicas_are_the_smallest_sets_of_a_walk_through_the_device_matrices(shards: int, *, sliced: bool) -> None:
    for data, model, experts in itertools.product([8, 16], [1, 2, 4], [2, 4]):
        mesh = Mesh(data, model, context=1, experts=experts, shards=shards)
        own = (experts, model) if sliced else (experts,)
        weights = [*holders(mesh.ranks, model, shards=shards), *holders(mesh.ranks, *own, shards=shards)]
        stride = Reading("experts", mesh, int(np.prod(own)) * shards).stride
        for rank in range(mesh.ranks):
            smallest = min((held for held in weights if rank in held), key=len)
            assert smallest == set(range(rank % stride, mesh.ranks, stride))
