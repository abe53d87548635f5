"""The part of a scenario about its training job, and the job's protection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from chaos.scenario.models.defaults import DEFAULT_KIND
from chaos.scenario.models.mechanisms import registered
from chaos.scenario.models.terms import Mechanism, Model, Seconds, Strategy

_WORDS: tuple[Strategy, ...] = get_args(Strategy)

MOST_STEPS_PER_UPDATE = 10_000
"""Most steps for one update of the optimizer."""


def injected(strategies: Iterable[object]) -> tuple[Mechanism, ...]:
    """Return the mechanisms that MindCluster switches on for a job with these strategies, by setting MS_ENABLE_TFT.

    Each occurs once. Source: Ascend Operator, the table of the environment variables that it injects. Pod rescheduling
    adds its own.
    """
    words = set(strategies)
    names = [switch.name for word in _WORDS if word in words for switch in registered() if word in switch.switched_by]
    return tuple(dict.fromkeys(names))


def allowed(protection: Iterable[object]) -> tuple[Strategy, ...]:
    """Return the strategies that a job with these mechanisms can use: those that its SDK may offer."""
    on = set(protection)
    switched = [switch for switch in registered() if switch.name in on]
    if any(switch.safeguarded for switch in switched):
        switched += [switch for switch in registered() if switch.saves]
    offered = {"exit", *(switch.strategy for switch in switched)}
    return tuple(word for word in _WORDS if word in offered)


class Hccl(Model):
    """Response of a rank's collective communication to a network fault. Times are the vendor's, scaled."""

    watchdog: bool = Field(True, description="Watch for communication errors in a thread, as MindSpore does.")
    exec_timeout: Seconds = Field(
        1800.0, gt=0, description="Time after which a collective gives up (HCCL_EXEC_TIMEOUT), before scaling."
    )
    time_scale: float = Field(
        0.01, gt=0, le=1, allow_inf_nan=False, description="Factor of this timeout and of the watchdog's 2 s poll."
    )


class Storage(Model):
    """The storage of checkpoints."""

    mb_per_second: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Throughput limit, in 10^6 bytes. Default: the disk's.",
    )
    asynchronous_saving: bool = Field(False, description="Write periodic checkpoints in the background (async_save).")
    memory: bool = Field(
        False, description="Keep the latest checkpoint in memory too (MindIO ACP), and load it from there."
    )


class Torchrun(Model):
    """The options of torchrun, which starts the ranks of a job of PyTorch."""

    rendezvous: Literal["c10d", "static"] = Field("c10d", description="How the nodes' launchers meet (--rdzv-backend).")
    monitor_interval: Seconds = Field(0.1, gt=0, description="Time between looks at the ranks (--monitor-interval).")
    join_timeout: Seconds | None = Field(
        None,
        gt=0,
        description="Wait of the launchers for each other (--rdzv-conf join_timeout). Default: 10 min.",
    )
    store: Literal["own", "shared"] = Field(
        "own",
        description="Store of the ranks: a new one for each start, or torchrun's shared one, its default.",
    )
    edited: bool = Field(
        False,
        description=("torchrun imports mindio_ttp.framework_ttp, as the vendor's guide says (kind torch-rehearsal)."),
    )
    group_timeout: Seconds | None = Field(
        None,
        gt=0,
        description="The script's timeout for init_process_group. Only by it do ranks notice a silent one.",
    )


class Torchft(Model):
    """The lighthouse of a job of torchft, and the timeouts of its replica groups."""

    min_groups: int = Field(1, ge=1, description="Fewest replica groups that train together (--min_replicas).")
    join_timeout: Seconds = Field(
        60.0,
        gt=0,
        description="Wait for groups that live and have not asked yet (--join_timeout_ms).",
    )
    heartbeat_timeout: Seconds = Field(
        5.0,
        gt=0,
        description="Silence after which a group counts as dead (--heartbeat_timeout_ms).",
    )
    timeout: Seconds = Field(
        60.0,
        ge=1,
        description=("Limit of a quorum, a vote or a connection; whole seconds (TORCHFT_TIMEOUT_SEC and its like)."),
    )


class AbnormalResult(Model):
    """The check of the global norm, with the options that MindFormers allows beside it."""

    threshold: float = Field(
        gt=0,
        allow_inf_nan=False,
        description="Global norm from which a step is abnormal (global_norm_spike_threshold).",
    )
    skip_data: bool = Field(
        False, description="Skip the data of abnormal steps (use_skip_data_by_global_norm); excludes TRE."
    )
    recorded: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), strict=False, description="Steps that an abnormal_global_norm.json lists already."
    )


class Job(Model):
    """The training job and the protection that it runs under."""

    kind: str = Field(
        DEFAULT_KIND,
        description=(
            "rehearsal (MindSpore with stand-ins), torch-rehearsal (PyTorch with them), plain (Python), "
            "mindspore (msrun), torch (torchrun), torchft (replica groups), mindspeed (MindSpeed-LLM), "
            "mindformers, or another registered kind."
        ),
    )
    device: Literal["CPU", "Ascend", "GPU"] = Field(
        "CPU",
        description="Device that the script trains on; GPU with kind torch. On Ascend mechanisms are the vendor's.",
    )
    launcher: Literal["msrun"] = Field("msrun", description="Program that starts the ranks of MindSpore.")
    command: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = Field(
        None,
        strict=False,
        description="Words of a launcher of your own, with the command of a rank behind them "
        "(docs/guides/launchers.md in the repository). Default: the job kind's, msrun.",
    )
    torchrun: Torchrun = Field(Torchrun.model_construct(), description="Options of torchrun, for the job kind torch.")
    torchft: Torchft = Field(
        Torchft.model_construct(), description="Lighthouse and timeouts, for the job kind torchft."
    )
    python: str | None = Field(
        None,
        min_length=1,
        description="Interpreter of the ranks, a path or a name on PATH. Job kinds torch and torch-rehearsal.",
    )
    supervised: bool = Field(
        False,
        description="The launcher of command starts the ranks again after a fault, not the harness.",
    )
    rank_variables: dict[str, str] = Field(
        {},
        description=(
            "Variables by which that launcher numbers ranks, as {RANK: WORLD_SIZE}. Default: those of "
            "MindSpore, torchrun, Open MPI, MPICH, Slurm."
        ),
    )
    script: str | None = Field(
        None, description="Training script, relative to the scenario file. Default: the job kind's own."
    )
    arguments: tuple[str, ...] = Field((), strict=False, description="Arguments for the script.")
    resume_arguments: tuple[str, ...] = Field(
        (),
        strict=False,
        description="Further arguments for a new start of a script; refused where there is none.",
    )
    config: str | None = Field(
        None,
        description=(
            "Configuration of the framework, relative to the scenario file (kind mindformers: its "
            "YAML). The scenario may leave out its keys."
        ),
    )
    overrides: dict[str, Any] = Field(
        {}, description="Values that replace some of the configuration, by dotted or nested keys."
    )
    checkout: str | None = Field(
        None,
        description="Directory of the framework's sources. Default: the installed package.",
    )
    loading: Literal["path", "callback"] = Field(
        "path",
        description="How the agent comes into a rank: by PYTHONPATH, or as MindFormers' callback.",
    )
    steps: int = Field(ge=1, description="Steps that every rank trains in all.")
    steps_per_epoch: int | None = Field(None, ge=1, description="Batches in an epoch. Default: all steps.")
    steps_per_update: int | None = Field(
        None,
        ge=1,
        le=MOST_STEPS_PER_UPDATE,
        description=(
            "Steps for each update of the optimizer, more than 1 with gradient accumulation. Default: "
            "as in the fault-free run."
        ),
    )
    step_optimizer: int | None = Field(
        None,
        ge=1,
        description=("Number of the optimizer whose update ends a step, as the script makes them. Job kind torch."),
    )
    checkpoint_interval: int | None = Field(
        None, ge=1, description="Steps between periodic checkpoints. Default: none are saved."
    )
    exports: tuple[str, ...] = Field(
        (),
        strict=False,
        description=(
            "Names of files that the job saves and never goes on from, such as its best weights; * stands for "
            "any text. They are no checkpoints."
        ),
    )
    savers: Literal["every rank", "replica groups"] | None = Field(
        None,
        description=(
            "Who saves periodic checkpoints: every rank, or one of each replica group. Default: replica "
            "groups with your own script, else every rank."
        ),
    )
    sink_size: int = Field(1, ge=1, description="Data sink size. End-of-life checkpoints need 1.")
    seed: int = Field(1, ge=0, description="Seed of weights and data.")
    seed_at_start: bool = Field(
        False,
        description=("Seed Python, numpy and PyTorch when a rank starts, for scripts that do not. Job kind torch."),
    )
    digest_interval: int = Field(
        1, ge=0, description="Steps between digests of losses, gradients and parameters; 0 for none."
    )
    environment: dict[str, str] = Field(
        {},
        description=(
            "Environment variables for every process of the job. MS_ENABLE_TFT and protection fill in "
            "each other, and must agree."
        ),
    )
    protection: tuple[Mechanism, ...] = Field(
        (),
        strict=False,
        description="Mechanisms that are on. Those of MindSpore and the SDK become MS_ENABLE_TFT.",
    )
    tre: AbnormalResult | None = Field(None, description="Check the global norm, as TRE needs. Default: no check.")
    controller: Literal["rank 0", "outside"] = Field(
        "rank 0", description="Where the MindIO TFT controller lives: in rank 0, or in an agent outside."
    )
    agent: bool = Field(
        False,
        description=(
            "msrun hands its processes over to the cluster agent (taskd), which restarts lost ones and "
            "hosts the controller."
        ),
    )
    strategies: tuple[Strategy, ...] = Field(
        (),
        strict=False,
        description=("Strategies of the cluster agent (recover-strategy). Default: those that the mechanisms allow."),
    )
    restart_limit: int = Field(
        3,
        ge=0,
        description=(
            "Restarts of all ranks by the cluster agent (fault-retry-times) or torchrun "
            "(--max-restarts); with torchft of each replica group."
        ),
    )
    timings: Literal["fast", "vendor", "hardware"] = Field(
        "fast",
        description=(
            "Timing profile: fast or vendor (SDK stand-in), or hardware, the vendor's budgets (default on a device)."
        ),
    )
    hccl: Hccl | None = Field(None, description="Timeout and watchdog of the collectives. Default: neither.")
    storage: Storage = Field(Storage.model_construct(), description="Where checkpoints go, and how fast.")
    graph: bool = Field(False, description="Compile forward and backward into a graph. Default: PyNative.")
    compile_cache: bool = Field(
        False, description="Keep compiled graphs for the next launch (MS_COMPILER_CACHE_ENABLE); needs graph."
    )
    resume: bool = Field(
        True,
        description=(
            "Start the job again after a fault has ended it, from end-of-life or periodic checkpoints, "
            "and train to the end."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_for_agent(cls, data: Any) -> Any:
        """Fill in for an agent: the controller is in it, and strategies and mechanisms follow from each other."""
        if isinstance(data, dict) and data.get("device") in ("Ascend", "GPU"):
            data = {"timings": "hardware", **data}
        if not isinstance(data, dict) or data.get("agent") is not True:
            return data
        filled = {"controller": "outside", **data}
        written, strategies = data.get("protection"), data.get("strategies")
        if not written and isinstance(strategies, (list, tuple)):
            filled["protection"] = injected(strategies)
        elif not strategies and isinstance(written, (list, tuple)):
            filled["strategies"] = allowed(written)
        return filled
