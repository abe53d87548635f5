"""The settings that exclude MindSpeed-LLM's high availability, each with the vendor's reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chaos.jobs.mindspeed.case import LIMITS, PAGE, SOURCE, Case
from chaos.jobs.mindspeed.sizes import CONTEXT, DISTRIBUTED, EXPERT
from chaos.jobs.mindspeed.switches import ENVIRONMENT, MASTER, NO_REPLICA, misread
from chaos.scenario.errors import Problem

_CLASHES = {
    "--use-dist-ckpt": "the end-of-life checkpoint is saved in Megatron's format torch",
    "--swap-attention": "the ranks are stopped while memory is on its way to the host",
    "--swap-optimizer": "the optimizer's state has to be in the memory of the NPU",
    "--disable-gloo-group": "the parts of the optimizer's state are gathered through groups of gloo",
    "--lora-target-modules": "the parts of a model under LoRA are not adapted",
}
_SHARDED = ("--use-custom-fsdp", "--use-megatron-fsdp", "--use-torch-fsdp2", "--data-parallel-sharding-strategy")
_ACP = "MINDIO_AUTO_PATCH_MEGATRON"
_NO_CACHE = "PYTORCH_NO_NPU_MEMORY_CACHING"
_OTHER_ORDER = "--use-tp-pp-dp-mapping"
_EXPERTS_IN_SLICES = "--moe-tp-extend-ep"


def constraint_problems(case: Case) -> Iterator[Problem]:
    """Yield everything that ends the job at its start, or takes its protection away."""
    for message, hint in misread(case.switches):
        yield case.at(ENVIRONMENT, message, hint)
    yield from _without_master(case)
    if case.on is None:
        return
    for rule in _RULES:
        yield from rule(case)


def _without_master(case: Case) -> Iterator[Problem]:
    """Yield switches that need the first one, where it is off."""
    if case.on is not None:
        return
    ends = {"retry", "elastic-training"}
    for switch in case.switches.by_word.values():
        how = f"ends the job at its start ({SOURCE})" if switch.word in ends else "does nothing"
        yield case.of(switch, f"{switch.spelled} without {MASTER} {how}", f"add {MASTER}")
    if (argument := case.arguments.get(NO_REPLICA)) is not None and not case.switches.by_word:
        yield case.of(argument, f"{NO_REPLICA} without {MASTER} does nothing", "leave it out")


def _clashes(case: Case) -> Iterator[Problem]:
    for name, why in _CLASHES.items():
        if (argument := case.arguments.get(name)) is not None:
            yield case.of(
                argument,
                f"{name} with {_on(case)} ends the job at its start ({SOURCE}): {why}",
                "leave one of them out",
            )
    form = case.arguments.get("--ckpt-format")
    if form is not None and form.value != "torch":
        yield case.of(
            form,
            f"--ckpt-format {form.value} with {_on(case)} ends the job at its start ({SOURCE}): "
            f"{_CLASHES['--use-dist-ckpt']}",
            "write --ckpt-format torch",
        )


def _sharding(case: Case) -> Iterator[Problem]:
    if (argument := case.arguments.first(*_SHARDED)) is not None:
        yield case.of(
            argument,
            f"{argument.name} shards more than the optimizer's state, and MindIO TFT keeps replicas of ZeRO-1 only "
            f"({LIMITS})",
            f"use {DISTRIBUTED}, or take {_on(case)} out",
        )


def _replicas(case: Case) -> Iterator[Problem]:
    """Yield sizes that leave no replica of the optimizer's state, or no whole parts."""
    sizes = case.sizes
    if case.arguments.get(NO_REPLICA) is not None:
        yield from _no_replica(case)
        return
    parts = [("data-parallel group", sizes.data, "")]
    if sizes.expert > 1:
        parts.append(("data-parallel group of the experts", sizes.expert_data, f" ({EXPERT} {sizes.expert})"))
    for name, size, why in parts:
        if size <= 1:
            yield case.at(
                "cluster.ranks",
                f"the {name} has one rank{why}, so nothing has a replica, and {_on(case)} ends the job at its start "
                f"({LIMITS}: a DP size above 1)",
                f"use more ranks, or {NO_REPLICA} with --enable-hbmfault-repair or --enable-worker-reboot",
                text=str(case.scenario.cluster.ranks),
            )
        elif sizes.distributed and size % sizes.replicas:
            yield case.at(
                "cluster.ranks",
                f"the {name} has {size} ranks{why}, which {sizes.replicas} replicas do not divide, so {_on(case)} ends "
                f"the job at its start ({LIMITS}: the DP size must be a multiple of the replicas)",
                f"use a multiple of {sizes.replicas}",
                text=str(case.scenario.cluster.ranks),
            )


def _no_replica(case: Case) -> Iterator[Problem]:
    """Yield a job without replicas that nothing repairs from its periodic checkpoints."""
    argument = case.arguments.get(NO_REPLICA)
    assert argument is not None
    repairs = case.switches.get("retry", "recover")
    if repairs is None:
        yield case.of(
            argument,
            f"{NO_REPLICA} repairs from periodic checkpoints, and nothing that repairs is on: it needs "
            "--enable-hbmfault-repair or --enable-worker-reboot (MindCluster, recovery by periodic checkpoints)",
            "add one of them, or leave it out",
        )
    elif case.arguments.get("--save-interval") is None:
        yield case.of(
            argument,
            f"{NO_REPLICA} repairs from periodic checkpoints, and the job saves none ({PAGE}: a checkpoint must be "
            "there when the fault comes)",
            "add --save-interval",
        )


def _elastic(case: Case) -> Iterator[Problem]:
    """Yield what elastic training cannot have: it takes ranks out of the data dimension only."""
    switch = case.switches.get("elastic-training")
    if switch is None:
        return
    if not case.sizes.distributed:
        yield case.of(
            switch, f"{switch.spelled} without {DISTRIBUTED} ends the job at its start ({SOURCE})", f"add {DISTRIBUTED}"
        )
    for name in ("--reuse-fp32-param", "--use-custom-fsdp"):
        if (argument := case.arguments.get(name)) is not None:
            yield case.of(
                argument, f"{name} with {switch.spelled} ends the job at its start ({SOURCE})", "leave one of them out"
            )
    for name, size in ((EXPERT, case.sizes.expert), (CONTEXT, case.sizes.context)):
        if size > 1 and (argument := case.arguments.get(name)) is not None:
            yield case.of(
                argument,
                f"{name} {size} with {switch.spelled} ends the job at its start ({SOURCE}): ranks are taken out of "
                "data, tensor and pipeline parallelism only",
                f"leave one of them out, or use {name} 1",
            )


def _nodes(case: Case) -> Iterator[Problem]:
    switch = case.switches.get("recover", "elastic-training")
    if switch is not None and case.scenario.cluster.nodes == 1:
        yield case.of(
            switch,
            f"{switch.spelled} needs two nodes or more, and the job has one ({LIMITS}): what is lost with a node comes "
            "from the others",
            "use more nodes (cluster.nodes), or leave it out",
        )


def _saving(case: Case) -> Iterator[Problem]:
    """Yield what keeps an end-of-life checkpoint from being saved."""
    assert case.on is not None
    if case.arguments.get("--save") is None:
        yield case.of(
            case.on,
            f"{_on(case)} without --save: the end-of-life checkpoint has no place, and saving it raises an error "
            "(tft_save_callback)",
            "add --save with a directory",
        )
    if case.environment.get(_ACP, "").lower() in ("true", "1"):
        yield case.at(
            f"job.environment.{_ACP}",
            f"{_ACP} lets MindIO ACP save in the background, and MindIO TFT writes to the disk itself, since the ranks "
            f"exit behind the save ({LIMITS})",
            "leave it out",
        )


def _memory(case: Case) -> Iterator[Problem]:
    switch = case.switches.get("retry")
    if switch is not None and _NO_CACHE in case.environment:
        yield case.at(
            f"job.environment.{_NO_CACHE}",
            f"{_NO_CACHE} with {switch.spelled}: memory is repaired through torch_npu's allocator, so the variable "
            "must not be set",
            "leave it out",
        )


def _unknown_layout(case: Case) -> Iterator[Problem]:
    """Yield arguments after which this version does not know which ranks hold the same state."""
    argument = case.arguments.get(_OTHER_ORDER)
    if argument is None and case.sizes.expert > 1:
        argument = case.arguments.get(_EXPERTS_IN_SLICES)
    if argument is not None:
        yield case.of(
            argument,
            f"{argument.name} places the ranks otherwise, and which of them are replicas then is not yet known to this "
            "version",
            "leave it out",
        )


_RULES: tuple[Callable[[Case], Iterator[Problem]], ...] = (
    _clashes,
    _sharding,
    _replicas,
    _elastic,
    _nodes,
    _saving,
    _memory,
    _unknown_layout,
)


def _on(case: Case) -> str:
    assert case.on is not None
    return case.on.spelled
