"""Which ranks hold replicas, who writes a checkpoint, and what a plan of MindSpeed-LLM says of its end."""

from __future__ import annotations

import pytest

from chaos.jobs.kind import job_kind
from chaos.jobs.mindspeed.arguments import Arguments
from chaos.jobs.mindspeed.sizes import sizes_of
from chaos.plan.model import Plan
from tests.unit.jobs.mindspeed.conftest import KILL, SOUND, MindSpeedScenario

HA = "--enable-high-availability"


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [
        # REPLICA_NUM=2: rank i of the first half of a data-parallel group, and rank i of the second.
        ((HA,), [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ((HA, "--tensor-model-parallel-size=2"), [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ((HA, "--tensor-model-parallel-size=4"), [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ((HA, "--pipeline-model-parallel-size=2"), [(0, 2), (1, 3), (4, 6), (5, 7)]),
        ((HA, "--context-parallel-size=2"), [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ((HA, "--expert-model-parallel-size=2"), [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ((HA, "--optimizer-replica-num=4"), [(0, 2, 4, 6), (1, 3, 5, 7)]),
        ((), [(0, 1, 2, 3, 4, 5, 6, 7)]),
    ],
)
def test_replicas_are_a_part_of_the_data_parallel_group_apart(
    job: MindSpeedScenario, arguments: tuple[str, ...], groups: list[tuple[int, ...]]
) -> None:
    assert list(job.plan(*arguments, faults=()).layout.replica_groups) == groups


def test_without_the_distributed_optimizer_each_rank_has_all_of_it(job: MindSpeedScenario) -> None:
    plan = job.plan(HA, "--tensor-model-parallel-size=2", faults=(), sound=SOUND[1:])
    assert list(plan.layout.replica_groups) == [(0, 2, 4, 6), (1, 3, 5, 7)]
    plan = job.plan(HA, "--expert-model-parallel-size=4", faults=(), sound=SOUND[1:])
    assert list(plan.layout.replica_groups) == [(0, 4), (1, 5), (2, 6), (3, 7)]


def groups_of(plan: Plan) -> str:
    (text,) = [reason for reason in plan.explanation.reasons if "replica group" in reason and "rank" in reason[:40]]
    return text


@pytest.mark.parametrize(
    ("sound", "shard", "text"),
    [
        (SOUND, "optimizer", "hold the same weights, and the optimizer's state in shards over all of them"),
        (SOUND[1:], "none", "hold the same weights and optimizer state"),
    ],
)
def test_without_protection_the_distributed_optimizer_is_in_shards(
    job: MindSpeedScenario, sound: tuple[str, ...], shard: str, text: str
) -> None:
    plan = job.plan(faults=(), sound=sound)
    assert list(plan.layout.replica_groups) == [tuple(range(8))]
    assert plan.layout.shard == shard
    assert text in groups_of(plan)


@pytest.mark.parametrize("sound", [SOUND, SOUND[1:]])
def test_with_experts_no_plan_says_that_all_ranks_hold_the_same(job: MindSpeedScenario, sound: tuple[str, ...]) -> None:
    plan = job.plan("--expert-model-parallel-size=2", faults=(), sound=sound)
    assert "fewer ranks hold the same experts" in groups_of(plan)


def test_one_rank_spreads_its_optimizer_over_nobody(job: MindSpeedScenario) -> None:
    assert job.plan(faults=(), ranks=1).layout.shard == "none"


def in_megatrons_order(tensor: int, context: int, data: int, stages: int) -> list[list[int]]:
    """The data-parallel groups with context parallelism, counted rank by rank: tensor fastest, pipeline slowest."""
    groups: dict[tuple[int, int], list[int]] = {}
    rank = 0
    for stage in range(stages):
        for _ in range(data * context):
            for place in range(tensor):
                groups.setdefault((stage, place), []).append(rank)
                rank += 1
    return list(groups.values())


@pytest.mark.parametrize(
    ("tensor", "context", "data", "stages"), [(1, 1, 2, 1), (2, 1, 4, 2), (4, 2, 2, 1), (2, 2, 4, 4), (1, 4, 2, 2)]
)
def test_replicas_are_those_that_the_sdk_is_told(
    job: MindSpeedScenario, tensor: int, context: int, data: int, stages: int
) -> None:
    expected = set()
    for group in in_megatrons_order(tensor, context, data, stages):
        half = len(group) // 2
        expected |= set(zip(group[:half], group[half:], strict=True))
    plan = job.plan(
        HA,
        f"--tensor-model-parallel-size={tensor}",
        f"--context-parallel-size={context}",
        f"--pipeline-model-parallel-size={stages}",
        ranks=tensor * context * data * stages,
        faults=(),
    )
    assert set(plan.layout.replica_groups) == expected


def test_one_rank_writes_for_all_that_share_a_slice_of_the_weights(job: MindSpeedScenario) -> None:
    plan = job.plan(HA, "--tensor-model-parallel-size=2")
    assert plan.checkpoint is not None
    assert (plan.checkpoint.step, plan.checkpoint.directory) == (15, "iter_0000015")
    assert plan.checkpoint.entitled == {0: (0, 2, 4, 6), 1: (1, 3, 7)}
    assert plan.checkpoint.files == {
        0: "iter_0000015/mp_rank_00/model_optim_rng.pt",
        1: "iter_0000015/mp_rank_01/model_optim_rng.pt",
    }
    assert plan.resume.resume_step == 16


def test_a_writer_in_each_stage_is_named_by_it_and_the_lowest_that_lives_writes(job: MindSpeedScenario) -> None:
    fault = {**KILL, "target": {"rank": 4}}
    plan = job.plan(HA, "--pipeline-model-parallel-size=2", faults=(fault,))
    assert plan.checkpoint is not None
    assert plan.checkpoint.files == {
        0: "iter_0000015/mp_rank_00_000/model_optim_rng.pt",
        5: "iter_0000015/mp_rank_00_001/model_optim_rng.pt",
    }


def test_with_experts_each_slice_of_them_has_a_writer_and_its_file_is_not_named(job: MindSpeedScenario) -> None:
    plan = job.plan(HA, "--expert-model-parallel-size=2")
    assert plan.checkpoint is not None
    assert (plan.checkpoint.savers, plan.checkpoint.files) == ((0, 1), {})


def test_all_replicas_lost_leave_nothing_to_save(job: MindSpeedScenario) -> None:
    (problem,) = job.refused(HA, faults=({**KILL, "target": {"ranks": [1, 5]}},))
    assert "every rank of replica group [1, 5] is lost" in problem.message
    assert "MindIO TFT" in problem.message
    assert "MindSpore" not in problem.message


def test_a_plan_says_what_was_not_seen_and_how_the_job_ends(job: MindSpeedScenario) -> None:
    told = " ".join(job.plan(HA).explanation.reasons)
    for part in (
        "No run of MindSpeed-LLM was judged on hardware",
        "exit with code 2",
        "about 20 s is lost",
        "port 8000",
    ):
        assert part in told
    assert "MindSpore" not in told
    unprotected = " ".join(job.plan(expect={"resume": {"step": 11}}).explanation.reasons)
    assert "No run of MindSpeed-LLM was judged on hardware" in unprotected
    assert "port 8000" not in unprotected


def test_elastic_training_without_mindcluster_does_nothing_by_the_plan(job: MindSpeedScenario) -> None:
    switch = "--enable-elastic-training"
    alone = job.plan(HA, switch, nodes=2)
    assert alone.response.mechanism == "TTP"
    assert f"{switch} works with the components of MindCluster only" in " ".join(alone.explanation.reasons)
    assert switch not in " ".join(job.plan(HA).explanation.reasons)


def test_a_memory_error_is_repaired_from_the_replica_in_the_vendors_words(job: MindSpeedScenario) -> None:
    fault = {"kind": "uce", "target": {"rank": 3}, "trigger": {"step": 20, "phase": "forward"}}
    plan = job.plan(HA, "--enable-hbmfault-repair", faults=(fault,))
    assert plan.response.mechanism == "UCE"
    assert "MindIO TFT with MindSpeed-LLM" in " ".join(plan.explanation.reasons)


def test_sizes_without_protection_have_no_replicas() -> None:
    sizes = sizes_of(Arguments(["--use-distributed-optimizer"]), 8, protected=False)
    assert (sizes.replicas, sizes.shards) == (1, None)


def test_jobs_are_planned_and_not_run_and_the_kind_says_why() -> None:
    assert "hardware" in (job_kind("mindspeed").plans_only or "")
    assert job_kind("torch").plans_only is None
