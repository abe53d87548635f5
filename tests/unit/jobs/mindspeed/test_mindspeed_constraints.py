"""What the vendor excludes is refused with its line and its reason; a sound neighbour of each is planned."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.jobs.mindspeed.conftest import KILL, SOUND, MindSpeedScenario

HA = "--enable-high-availability"
UCE = "--enable-hbmfault-repair"
ARF = "--enable-worker-reboot"
ELASTIC = "--enable-elastic-training"
NONE: dict[str, Any] = {"faults": (), "expect": {}}
"""A job without a fault: nothing has to be recovered."""

REFUSED = [
    ((UCE,), {}, UCE, "ends the job at its start", ((HA, UCE), {})),
    ((ELASTIC,), NONE, ELASTIC, "ends the job at its start", ((HA, ELASTIC), {"nodes": 2, **NONE})),
    ((ARF,), NONE, ARF, "does nothing", ((HA, ARF), {"nodes": 2, **NONE})),
    ((HA, "--use-dist-ckpt"), {}, "--use-dist-ckpt", "format torch", (("--use-dist-ckpt",), {})),
    ((HA, "--ckpt-format=torch_dist"), {}, "--ckpt-format", "format torch", ((HA, "--ckpt-format=torch"), {})),
    ((HA, "--swap-attention"), {}, "--swap-attention", "on its way to the host", (("--swap-attention",), {})),
    ((HA, "--swap-optimizer"), {}, "--swap-optimizer", "memory of the NPU", (("--swap-optimizer",), {})),
    ((HA, "--disable-gloo-group"), {}, "--disable-gloo-group", "groups of gloo", (("--disable-gloo-group",), {})),
    (
        (HA, "--lora-target-modules", "linear_qkv"),
        {},
        "--lora-target-modules",
        "under LoRA",
        (("--lora-target-modules", "linear_qkv"), {}),
    ),
    ((HA, "--use-custom-fsdp"), {}, "--use-custom-fsdp", "ZeRO-1 only", (("--use-custom-fsdp",), {})),
    ((HA, "--use-tp-pp-dp-mapping"), {}, "--use-tp-pp-dp-mapping", "not yet known", ((HA,), {})),
    ((HA,), {"ranks": 7}, "ranks: 7", "which 2 replicas do not divide", ((), {"ranks": 7})),
    (
        (HA, "--tensor-model-parallel-size=8"),
        NONE,
        "ranks: 8",
        "has one rank, so nothing has a replica",
        ((HA, "--tensor-model-parallel-size=2"), NONE),
    ),
    ((HA, "--optimizer-replica-num=3"), {}, "ranks: 8", "which 3 replicas", ((HA, "--optimizer-replica-num=4"), {})),
    (
        (HA, "--expert-model-parallel-size=8"),
        {},
        "ranks: 8",
        "group of the experts has one rank",
        ((HA, "--expert-model-parallel-size=4"), {}),
    ),
    (
        (HA, ELASTIC, "--expert-model-parallel-size=2"),
        {"nodes": 2, **NONE},
        "--expert-model-parallel-size",
        "data, tensor and pipeline parallelism only",
        ((HA, "--expert-model-parallel-size=2"), {}),
    ),
    (
        (HA, ELASTIC, "--context-parallel-size=2"),
        {"nodes": 2, **NONE},
        "--context-parallel-size",
        "data, tensor and pipeline parallelism only",
        ((HA, "--context-parallel-size=2"), {}),
    ),
    (
        (HA, ELASTIC, "--reuse-fp32-param"),
        {"nodes": 2, **NONE},
        "--reuse-fp32-param",
        "ends the job at its start",
        ((HA, "--reuse-fp32-param"), {}),
    ),
    (
        (HA, ELASTIC),
        {"sound": SOUND[1:], "nodes": 2, **NONE},
        ELASTIC,
        "without --use-distributed-optimizer",
        ((HA,), {"sound": SOUND[1:]}),
    ),
    ((HA, ARF), NONE, ARF, "needs two nodes or more", ((HA, ARF), {"nodes": 2, **NONE})),
    ((HA, ELASTIC), NONE, ELASTIC, "needs two nodes or more", ((HA, ELASTIC), {"nodes": 2, **NONE})),
    ((HA,), {"sound": SOUND[:2]}, HA, "without --save", ((), {"sound": SOUND[:2]})),
    (
        (HA, "--distributed-optimizer-no-replica"),
        NONE,
        "--distributed-optimizer-no-replica",
        "nothing that repairs is on",
        ((HA, UCE, "--distributed-optimizer-no-replica"), NONE),
    ),
    (
        (HA, UCE, "--distributed-optimizer-no-replica"),
        {"sound": (*SOUND[:2], *SOUND[3:]), **NONE},
        "--distributed-optimizer-no-replica",
        "the job saves none",
        ((HA, UCE, "--distributed-optimizer-no-replica"), {"ranks": 7, **NONE}),
    ),
    (
        ("--distributed-optimizer-no-replica",),
        {},
        "--distributed-optimizer-no-replica",
        "does nothing",
        ((), {}),
    ),
    (
        (HA,),
        {"environment": {"MINDIO_AUTO_PATCH_MEGATRON": "true"}},
        "MINDIO_AUTO_PATCH_MEGATRON",
        "MindIO ACP save in the background",
        ((HA,), {"environment": {"MINDIO_AUTO_PATCH_MEGATRON": "false"}}),
    ),
    (
        (HA, UCE),
        {"environment": {"PYTORCH_NO_NPU_MEMORY_CACHING": "1"}},
        "PYTORCH_NO_NPU_MEMORY_CACHING",
        "must not be set",
        ((HA,), {"environment": {"PYTORCH_NO_NPU_MEMORY_CACHING": "1"}}),
    ),
    (
        (),
        {"environment": {"HIGH_AVAILABILITY": "dump, retry"}},
        "HIGH_AVAILABILITY",
        "has a blank",
        ((), {"environment": {"HIGH_AVAILABILITY": "dump,retry"}}),
    ),
    ((HA,), {"sound": SOUND[:4]}, "--save=/ckpt", "loads none (--load)", ((HA, "--load=/ckpt"), {"sound": SOUND[:4]})),
    (
        (HA, "--load=/other"),
        {},
        "--save=/ckpt",
        "misses what it saved",
        ((HA, "--load=/other"), {"resume_arguments": ["--load=/ckpt"]}),
    ),
    ((HA, "--finetune"), {}, "--finetune", "counts its steps from 0", ((HA, "--finetune"), {"resume": False})),
    ((HA, "--no-load-optim"), {}, "--no-load-optim", "loads no optimizer", ((HA, "--no-load-optim"), NONE)),
]


@pytest.mark.parametrize(("arguments", "keys", "place", "said", "sound"), REFUSED)
def test_what_is_excluded_is_refused_at_its_line_and_its_neighbour_is_planned(
    job: MindSpeedScenario,
    arguments: tuple[str, ...],
    keys: dict[str, Any],
    place: str,
    said: str,
    sound: tuple[tuple[str, ...], dict[str, Any]],
) -> None:
    problems = job.refused(*arguments, **keys)
    told = [problem for problem in problems if said in problem.message]
    assert [problem.line for problem in told] == [job.line(place)], "\n".join(map(str, problems))
    assert told[0].hint
    assert job.plan(*sound[0], **sound[1])


def kill(*hit: int) -> dict[str, Any]:
    return {**KILL, "target": {"ranks": list(hit)}}


def test_more_than_half_of_the_ranks_must_live(job: MindSpeedScenario) -> None:
    (problem,) = job.refused(HA, faults=(kill(1, 2, 3, 5),))
    assert "4 of 8 ranks are lost, and more than half have to live" in problem.message
    assert problem.line == job.line("target")
    assert job.plan(HA, faults=(kill(1, 2, 3),)).checkpoint is not None


def test_the_controllers_node_does_not_survive_a_rescheduling(job: MindSpeedScenario) -> None:
    cluster = {"nodes": 4, "agent": True}
    problems = job.refused(HA, ARF, faults=(kill(1),), strategies=["recover", "dump"], **cluster)
    assert any("is on node 0 with the controller" in problem.message for problem in problems)
    plan = job.plan(HA, ARF, faults=(kill(3),), strategies=["recover", "dump"], **cluster)
    assert plan.response.mechanism == "ARF"


def test_a_second_fault_while_saving_leaves_no_checkpoint(job: MindSpeedScenario) -> None:
    second = {"kind": "kill", "target": {"rank": 1}, "trigger": {"handler": "save_ckpt"}}
    (problem,) = job.refused(HA, faults=(KILL, second))
    assert "no end-of-life checkpoint is finished" in problem.message
    expect = {"checkpoint": "none", "resume": "none"}
    assert job.plan(HA, faults=(KILL, second), expect=expect).checkpoint is None


@pytest.mark.parametrize(
    ("arguments", "keys", "said"),
    [
        ((HA, UCE, "--distributed-optimizer-no-replica"), {}, "takes all ranks back to the periodic checkpoint"),
        ((HA, UCE, "--distributed-optimizer-no-replica"), {}, "it must be there when the fault comes"),
        ((HA, ELASTIC), {"nodes": 2, "agent": True, "strategies": ["elastic-training", "dump"]}, "with fewer ranks"),
        ((HA, ELASTIC), {"nodes": 2, "agent": True, "strategies": ["elastic-training", "dump"]}, "no device is free"),
        ((HA,), {"protection": ["TTP", "ELASTIC"]}, "its page does not say what follows an end-of-life checkpoint"),
        ((HA,), {"expect": {"checkpoint": {"step": 15, "ranks": [0, 1, 2, 3]}}}, "is MindIO TFT's choice"),
    ],
)
def test_what_this_version_cannot_plan_is_told(
    job: MindSpeedScenario, arguments: tuple[str, ...], keys: dict[str, Any], said: str
) -> None:
    assert any(said in problem.message for problem in job.refused(*arguments, **keys))


def test_ranks_that_the_sizes_do_not_divide_are_refused(job: MindSpeedScenario) -> None:
    (problem,) = job.refused("--tensor-model-parallel-size=3")
    assert "8 ranks are no multiple of the tensor, pipeline and context parallel sizes 3 x 1 x 1" in problem.message


def test_a_configuration_and_a_cpu_are_refused(job: MindSpeedScenario) -> None:
    assert "described by its arguments" in job.refused(HA, config="job.yaml")[0].message
    assert any("does not train on CPU" in problem.message for problem in job.refused(HA, device="CPU"))
