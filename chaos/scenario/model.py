"""The scenario: which cluster, which job, which faults and when, what is expected.

Pure data, filled by :mod:`chaos.scenario.load`. Field names are the field's own terms (MindFormers' YAML keys for
parallel sizes, MS_ENABLE_TFT's names for the mechanisms). Cross-field rules that need no topology are here; the rest
belongs to the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationInfo, model_validator

from chaos.scenario.duration import parse_duration, show_duration

FROM_FILE = "file"
"""Validation context of values that were read from a file: there a float is a duration without its unit."""


def _seconds(value: object, info: ValidationInfo) -> float:
    return parse_duration(str(value) if info.context == FROM_FILE and isinstance(value, float) else value)


Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(show_duration, when_used="json"),
    Field(json_schema_extra={"x-chaos-duration": True}),
]
"""A duration. Written with its unit (``5s``, ``200ms``, ``2m``, ``1h``), held in seconds."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
"""Names become names of files, so they cannot be ``..`` or begin like an option."""

Tag = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$", max_length=100)]
"""A tag, in letters that pytest's marker expressions take."""

Rank = Annotated[int, Field(ge=0)]
"""A rank; ranks are counted from 0."""


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Ranks = Annotated[tuple[Rank, ...], BeforeValidator(_as_tuple)]
"""Ranks as a list. Converted here, since inside a union older pydantic does not heed a field's ``strict=False``."""

MAX_FAULTS = 1000
"""Most faults of one schedule."""

Mechanism = Literal["TTP", "UCE", "HCCE", "TRE", "ARF", "TSP", "RSC"]
"""The seven high-availability mechanisms, by their names in MS_ENABLE_TFT."""

Strategy = Literal["retry", "recover-in-place", "recover", "elastic-training", "dump", "exit"]
"""MindCluster's recovery strategies (``recover-strategy``), the most preferred one first."""

SWITCHES: Mapping[Strategy, tuple[Mechanism, ...]] = MappingProxyType(
    {
        "retry": ("UCE", "HCCE"),
        "recover-in-place": ("ARF",),
        "recover": ("ARF",),
        "dump": ("TTP",),
        "exit": ("ARF",),
    }
)
"""Mechanisms that MindCluster switches on for a strategy in a job of MindSpore, by setting MS_ENABLE_TFT.

Source: Ascend Operator, the table of the environment variables that it injects. Pod rescheduling adds RSC.
"""

Phase = Literal[
    "step.begin",
    "forward",
    "allreduce.enter",
    "optimizer.update",
    "step.end",
    "checkpoint.begin",
    "checkpoint.write",
    "checkpoint.end",
    "checkpoint.load",
]
"""The agent's barrier names, in the order in which one step passes them.

``checkpoint.write`` is reached when the first parameter has been written: the file is there, and not whole.
"""


Handler = Literal["stop", "clean", "repair", "rollback", "rebuild_group", "save_ckpt", "rename", "exit"]
"""Handlers of the framework that the MindIO TFT SDK calls in a rank, by the names under which they are registered."""

MEASURES = frozenset(
    {"detection", "stop", "save", "repair", "exit", "relaunch", "load", "compile", "first step", "caught up"}
    | {"total", "rollback", "stalled"}
)
"""What can be compared between two runs: the phases of a recovery, and what they and the saving cost."""


class Model(BaseModel):
    """Base of every part of a scenario: unknown keys are errors, nothing changes after loading, no coercion."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


class Parallel(Model):
    """Parallel sizes, named as in MindFormers' ``parallel_config``."""

    data_parallel: int = Field(1, ge=1, description="Size of the data-parallel dimension.")
    model_parallel: int = Field(1, ge=1, description="Size of the model-parallel (tensor-parallel) dimension.")
    pipeline_stage: int = Field(1, ge=1, description="Number of pipeline stages.")
    enable_parallel_optimizer: bool = Field(False, description="Optimizer parallelism: shard the optimizer state.")
    optimizer_weight_shard_size: int | None = Field(
        None,
        ge=1,
        description="Ranks one copy of the optimizer state is sharded over; needs enable_parallel_optimizer.",
    )


class Cluster(Model):
    """Where the job lives and how its ranks are laid out."""

    platform: str = Field("local", description="Platform that the job lives on.")
    nodes: int = Field(1, ge=1, description="Number of nodes; ranks are spread over them evenly, in order.")
    ranks: int = Field(ge=1, description="Number of ranks (worker processes).")
    parallel: Parallel | None = Field(None, description="Parallel sizes. Default: pure data parallelism.")


def injected(strategies: Iterable[object]) -> tuple[Mechanism, ...]:
    """The mechanisms that MindCluster switches on for a job with these strategies, each once."""
    wanted = set(strategies)
    return tuple(dict.fromkeys(one for name, switches in SWITCHES.items() if name in wanted for one in switches))


def allowed(protection: Iterable[object]) -> tuple[Strategy, ...]:
    """The strategies that a job with these mechanisms has use for: those that its SDK may offer."""
    on = set(protection)
    offered: dict[Strategy, bool] = {
        "retry": bool(on & {"UCE", "HCCE"}),
        "recover": "ARF" in on,
        "dump": bool(on & {"TTP", "UCE", "ARF"}),
        "exit": True,
    }
    return tuple(name for name, wanted in offered.items() if wanted)


class Hccl(Model):
    """What a rank's collective communication does about a network fault. Times are the vendor's, scaled."""

    watchdog: bool = Field(
        True, description="Watch for communication errors in a thread, as MindSpore does by default."
    )
    exec_timeout: Seconds = Field(
        1800.0, gt=0, description="Time after which a collective gives up (HCCL_EXEC_TIMEOUT), before it is scaled."
    )
    time_scale: float = Field(
        0.01, gt=0, le=1, allow_inf_nan=False, description="Factor of this timeout and of the watchdog's 2 s poll."
    )


class Storage(Model):
    """What checkpoints are written to and read from."""

    mb_per_second: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Throughput that the storage is held to, in 10^6 bytes. Default: that of the disk.",
    )
    asynchronous_saving: bool = Field(
        False, description="Write periodic checkpoints in the background (async_save of ModelCheckpoint)."
    )
    memory: bool = Field(
        False, description="Keep the latest checkpoint in memory too (MindIO ACP), and load it from there."
    )


class AbnormalResult(Model):
    """The watch over the global norm, and what MindFormers lets it be combined with."""

    threshold: float = Field(
        gt=0,
        allow_inf_nan=False,
        description="Global norm from which a step is abnormal (global_norm_spike_threshold).",
    )
    skip_data: bool = Field(
        False, description="Skip the data of abnormal steps (use_skip_data_by_global_norm); excludes TRE."
    )
    recorded: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), strict=False, description="Steps that an abnormal_global_norm.json of an earlier run lists already."
    )


class Job(Model):
    """The training job and the protection that it runs under."""

    kind: str = Field("rehearsal", description="How the job is started: a registered job kind.")
    launcher: Literal["msrun"] = Field("msrun", description="What spawns the ranks.")
    script: str | None = Field(
        None, description="Training script, relative to the scenario file. Default: the job kind's own."
    )
    arguments: tuple[str, ...] = Field((), strict=False, description="Arguments for the script.")
    steps: int = Field(ge=1, description="Steps that the job trains in all, on every rank.")
    steps_per_epoch: int | None = Field(
        None, ge=1, description="Batches in one epoch. Default: all steps in one epoch."
    )
    checkpoint_interval: int | None = Field(
        None, ge=1, description="Steps between periodic checkpoints. Default: none are saved."
    )
    sink_size: int = Field(1, ge=1, description="Data sink size. End-of-life checkpoints need 1.")
    seed: int = Field(1, ge=0, description="Seed of weights and data.")
    digest_interval: int = Field(
        1, ge=0, description="Steps between digests of losses, gradients and parameters; 0 for none."
    )
    environment: dict[str, str] = Field({}, description="Environment variables added for every process of the job.")
    protection: tuple[Mechanism, ...] = Field(
        (), strict=False, description="Mechanisms that are switched on; becomes MS_ENABLE_TFT."
    )
    tre: AbnormalResult | None = Field(None, description="Watch the global norm, as TRE needs. Default: nobody does.")
    controller: Literal["rank 0", "outside"] = Field(
        "rank 0", description="Where the MindIO TFT controller lives: in rank 0's process, or in an agent outside."
    )
    agent: bool = Field(
        False,
        description="msrun hands its processes over to the cluster agent (taskd), which starts lost ones again and "
        "hosts the controller.",
    )
    strategies: tuple[Strategy, ...] = Field(
        (),
        strict=False,
        description="What the cluster agent may do (MindCluster's recover-strategy). Default: what the mechanisms that "
        "are on allow.",
    )
    restart_limit: int = Field(
        3, ge=0, description="How often the cluster agent may start all ranks again (MindCluster's fault-retry-times)."
    )
    timings: Literal["fast", "vendor"] = Field("fast", description="Timing profile of the SDK stand-in.")
    hccl: Hccl | None = Field(None, description="Timeout and watchdog of the collectives. Default: neither.")
    storage: Storage = Field(Storage(), description="Where checkpoints go, and how fast.")
    graph: bool = Field(False, description="Compile forward and backward into a graph. Default: PyNative.")
    compile_cache: bool = Field(
        False, description="Keep compiled graphs for the next launch (MS_COMPILER_CACHE_ENABLE); needs graph."
    )
    resume: bool = Field(
        True, description="Start the job again after it ended with a checkpoint, and train to the end."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_for_agent(cls, data: Any) -> Any:
        """With an agent, the controller is in it, and of strategies and mechanisms one follows from the other."""
        if not isinstance(data, dict) or data.get("agent") is not True:
            return data
        filled = {"controller": "outside", **data}
        written, strategies = data.get("protection"), data.get("strategies")
        if not written and isinstance(strategies, (list, tuple)):
            filled["protection"] = injected(strategies)
        elif not strategies and isinstance(written, (list, tuple)):
            filled["strategies"] = allowed(written)
        return filled


class RandomTarget(Model):
    """Ranks drawn by a seed. The seed is printed and recorded; give it back to draw the same ranks again."""

    count: int = Field(1, ge=1, description="How many ranks are drawn.")
    seed: int | None = Field(None, ge=0, description="Seed of the draw. Default: a fresh one, which the run prints.")
    among: Ranks | None = Field(None, min_length=1, description="Ranks to draw from. Default: all of them.")


class Target(Model):
    """What a fault hits: exactly one of these."""

    rank: int | None = Field(None, ge=0, description="One rank.")
    ranks: Ranks | None = Field(None, min_length=1, description="Several ranks.")
    node: int | None = Field(None, ge=0, description="All ranks of one node.")
    replica_group: int | None = Field(None, ge=0, description="All ranks of the n-th replica group.")
    role: Literal["controller", "last_stage"] | None = Field(
        None, description="The rank that hosts the controller, or the ranks of the last pipeline stage."
    )
    random: RandomTarget | None = Field(None, description="Ranks drawn by a seed.")


class LogLine(Model):
    """A line that a rank (or any process of the job) logs."""

    contains: str = Field(min_length=1, description="Text that the line contains.")
    rank: int | None = Field(None, ge=0, description="Rank whose log it is. Default: any process of the job.")


class Trigger(Model):
    """When a fault is injected. Several keys in one trigger must all hold. A trigger fires once."""

    step: int | None = Field(None, ge=1, description="Step, counted from 1 over the whole job.")
    phase: Phase | None = Field(
        None,
        description=(
            "Point in the step, by default step.begin; with handler: save_ckpt, a point checkpoint.* of that save."
        ),
    )
    handler: Handler | None = Field(
        None, description="The SDK calls this handler in the target ranks: a moment inside a recovery."
    )
    elapsed: Seconds | None = Field(None, description="Time since every rank has begun its first step.")
    log: LogLine | None = Field(None, description="A log line.")
    after: str | None = Field(None, description="Id of another fault that has landed.")
    all: tuple[Trigger, ...] | None = Field(None, strict=False, min_length=1, description="All of these.")
    any: tuple[Trigger, ...] | None = Field(None, strict=False, min_length=1, description="The first of these.")


class Fault(Model):
    """One fault: what is done, to whom, when."""

    id: str | None = Field(
        None,
        pattern=NAME,
        max_length=100,
        description="Name in reports. Default: the kind and the fault's place in the schedule, such as kill-1.",
    )
    kind: str = Field(description="A registered fault kind.")
    target: Target = Field(description="What the fault hits.")
    trigger: Trigger = Field(description="When it is injected.")
    parameters: dict[str, Any] = Field({}, description="Parameters of the fault kind.")


class ExpectCheckpoint(Model):
    """The end-of-life checkpoint that must exist."""

    step: int | None = Field(None, ge=0, description="Step that the checkpoint holds.")
    ranks: Ranks | None = Field(None, description="Ranks that saved, one of each replica group.")


class ExpectResume(Model):
    """Where training goes on."""

    step: int = Field(ge=1, description="First step that is trained after the resume.")


class ExpectLoss(Model):
    """How losses are compared with the fault-free baseline."""

    tolerance: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="Largest relative difference; 0 means bit for bit."
    )


class ExpectRecovery(Model):
    """Budgets for the recovery time. A phase without one takes the profile's."""

    total: Seconds | None = Field(None, description="Budget of the whole recovery.")
    phases: dict[str, Seconds] = Field({}, description="Budget by phase, for example {detection: 1s}.")


class Expect(Model):
    """What must be seen. Everything left out is filled in from the plan."""

    mechanism: Mechanism | Literal["none"] | None = Field(None, description="Mechanism that must act, and no other.")
    checkpoint: ExpectCheckpoint | Literal["none"] | None = Field(None, description="End-of-life checkpoint, or none.")
    resume: ExpectResume | Literal["none"] | None = Field(None, description="Where training goes on, or none.")
    loss: ExpectLoss | None = Field(None, description="Comparison with the baseline.")
    recovery: ExpectRecovery | None = Field(None, description="Budgets of the recovery time.")


class Compare(Model):
    """What is compared between two cells that differ in one axis: a recovery without an aid and with it."""

    axis: str = Field(description="Axis of the matrix with two values; the second is compared with the first.")
    at_most: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=1,
        description="Largest share of the first cell's measure that the second may have, for example {detection: 0.5}. "
        "Measures: the phases, total, rollback (steps trained again), stalled (seconds that saving stopped training).",
    )


class Deadlines(Model):
    """One deadline for the whole run and one for each wait."""

    run: Seconds = Field(600.0, gt=0, description="The whole run, baseline included.")
    start: Seconds = Field(180.0, gt=0, description="From launch until every rank has begun its first step.")
    fault: Seconds = Field(120.0, gt=0, description="From the first step until a fault's trigger fires.")
    land: Seconds = Field(30.0, gt=0, description="From the injection until its evidence.")
    end: Seconds = Field(300.0, gt=0, description="From the last fault's landing until every rank has exited.")
    stop: Seconds = Field(15.0, gt=0, description="From SIGTERM until SIGKILL during teardown.")


class Scenario(Model):
    """A scenario file after variables and one matrix cell have been filled in."""

    chaos: Literal[1] = Field(description="Version of the scenario language; the first key of the file.")
    name: str = Field(pattern=NAME, max_length=100, description="Name of the scenario.")
    description: str = Field("", description="What the scenario proves.")
    tags: tuple[Tag, ...] = Field((), strict=False, description="Become pytest markers.")
    variables: dict[str, Any] = Field({}, description="Values for ${name}; the command line can set them.")
    matrix: dict[str, list[Any]] = Field({}, description="One cell for every combination; overrides variables.")
    cluster: Cluster = Field(description="Platform, nodes, ranks and parallel sizes.")
    job: Job = Field(description="What is trained, and the mechanisms that protect it.")
    faults: tuple[Fault, ...] = Field((), strict=False, max_length=MAX_FAULTS, description="The fault schedule.")
    expect: Expect = Field(Expect(), description="What is expected beyond the plan.")
    compare: Compare | None = Field(None, description="What is compared between the cells of the matrix.")
    baseline: str = Field("auto", description="auto, none, or the directory of an earlier run.")
    keep_checkpoints_mb: int = Field(
        1024, ge=0, description="Checkpoint files larger than this (MB) are kept as digests only."
    )
    deadlines: Deadlines = Field(Deadlines(), description="Deadlines of the run and of each wait.")
    finding: str | None = Field(
        None,
        pattern=r"^F-[0-9]{2,}$",
        description="Known defect of the system under test (docs/findings.md): the run fails.",
    )
