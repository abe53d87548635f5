"""The scenario: the cluster, the job, the faults and their times, the expectations.

Pure data, filled by :mod:`chaos.scenario.load`. Field names are the field's own terms (MindFormers' YAML keys for
parallel sizes, MS_ENABLE_TFT's names for the mechanisms). Cross-field rules that need no topology are here; the rest
belongs to the plan.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from chaos.scenario.models.docker import Docker
from chaos.scenario.models.fault import MAX_FAULTS, Fault
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes
from chaos.scenario.models.own import MOST, Hooks, OwnCheck
from chaos.scenario.models.ssh import Ssh
from chaos.scenario.models.terms import NAME, Mechanism, Model, Ranks, Seconds, Tag

Shard = Literal["none", "optimizer", "full"]
"""The state that the ranks of a data-parallel group hold in shards."""


class Parallel(Model):
    """Parallel sizes, named as in MindFormers' ``parallel_config``."""

    data_parallel: int = Field(1, ge=1, description="Data-parallel size.")
    model_parallel: int = Field(1, ge=1, description="Model-parallel (tensor-parallel) size.")
    pipeline_stage: int = Field(1, ge=1, description="Number of pipeline stages.")
    enable_parallel_optimizer: bool = Field(False, description="Shard the optimizer state.")
    optimizer_weight_shard_size: int | None = Field(
        None,
        ge=1,
        description="Ranks that share one copy of the optimizer state; needs enable_parallel_optimizer.",
    )
    shard: Shard = Field(
        "none",
        description=(
            "State that PyTorch shards over a data-parallel group: optimizer (ZeRO-1), or full (FSDP2: weights too)."
        ),
    )
    copies: int | None = Field(
        None, ge=1, description="Copies of the sharded state, as with HSDP; needs shard. Default: 1."
    )


MAX_RANKS = 1_048_576
"""Most ranks of a cluster; a plan holds all of them."""


DEFAULT_PLATFORM = "local"
"""The platform of a scenario that names none."""


class Cluster(Model):
    """Where the job lives and how its ranks are laid out."""

    platform: str = Field(DEFAULT_PLATFORM, description="Platform that the job lives on.")
    network: bool = Field(
        False,
        description=(
            "Nodes with a network that faults can act on (docs/reference/platforms.md in the "
            "repository). A network fault sets it."
        ),
    )
    nodes: int = Field(1, ge=1, description="Number of nodes; ranks are spread evenly, in order.")
    ranks: int = Field(ge=1, le=MAX_RANKS, description="Number of ranks (worker processes).")
    parallel: Parallel | None = Field(None, description="Parallel sizes. Default: pure data parallelism.")
    docker: Docker | None = Field(None, description="Settings of the platform docker.")
    ssh: Ssh | None = Field(None, description="Settings of the platform ssh.")
    kubernetes: Kubernetes | None = Field(None, description="Settings of the platform kubernetes.")


class ExpectCheckpoint(Model):
    """The end-of-life checkpoint that must exist."""

    step: int | None = Field(None, ge=0, description="Step that the checkpoint holds.")
    ranks: Ranks | None = Field(None, description="Ranks that saved, one of each replica group.")


class ExpectResume(Model):
    """Where training goes on."""

    step: int = Field(
        ge=1,
        description="First step that is trained after the resume, or after a restart by torchrun from a damaged "
        "checkpoint.",
    )


class StateLimits(Model):
    """Largest differences of a parameter, relative to its norm in the fault-free run. Without one it is not checked.

    A limit is less than 1: a parameter that is zero throughout is off by 1.
    """

    norm: float | None = Field(None, ge=0, lt=1, description="Of its norm and of its mean.")
    sample: float | None = Field(None, ge=0, lt=1, description="Of its values that a seed has chosen.")


class ExpectLoss(Model):
    """How losses are compared with the fault-free baseline."""

    tolerance: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="Largest relative difference; 0 means bit for bit."
    )
    mean: float | None = Field(
        None, ge=0, lt=1, description="Largest relative difference of the mean loss after the recovery."
    )
    state: dict[str, StateLimits] = Field(
        {},
        max_length=200,
        description=(
            "Largest differences of weights and optimizer state, by patterns of names "
            "(docs/design/verdicts.md in the repository). Default: the tolerance; beyond it unknown."
        ),
    )
    false_alarm: float | None = Field(None, gt=0, lt=1, description="Measured share of sound runs that exceed a limit.")
    measured: dict[str, str] = Field(
        {},
        max_length=100,
        description=(
            "Digests and releases of the measured job, by chaos calibrate. With another job what needs "
            "a limit is unknown."
        ),
    )


class ExpectRecovery(Model):
    """Budgets for the recovery. A phase without one takes the profile's; a restart of the job has no profile."""

    total: Seconds | None = Field(None, description="Budget of the whole recovery.")
    phases: dict[str, Seconds] = Field({}, description="Budget by phase, for example {detection: 1s}.")
    rollback: int | None = Field(None, ge=0, description="Most steps that may be trained again.")


class Expect(Model):
    """Expectations of the run. The plan fills in all that are left out."""

    mechanism: Mechanism | Literal["none"] | None = Field(None, description="Mechanism that must act, and no other.")
    checkpoint: ExpectCheckpoint | Literal["none"] | None = Field(None, description="End-of-life checkpoint, or none.")
    resume: ExpectResume | Literal["none"] | None = Field(
        None, description="Where training goes on, or none: the job just ends."
    )
    loss: ExpectLoss | None = Field(None, description="Comparison with the baseline.")
    recovery: ExpectRecovery | None = Field(None, description="Budgets of the recovery time.")
    root_cause: Literal["hit"] | None = Field(
        None,
        description=(
            "hit: torchrun must name the process that was hit first as root cause of each restart. "
            "Default: stated only."
        ),
    )


class Compare(Model):
    """Comparison of two cells that differ in one axis: a recovery without an option and with it."""

    axis: str = Field(description="Axis of the matrix with two values; the second is compared with the first.")
    at_most: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=1,
        description=(
            "Largest share of the first cell's measure, as {detection: 0.5}: of phases, total, rollback "
            "(repeated steps) or stalled (saving)."
        ),
    )


class Deadlines(Model):
    """One deadline for the whole run and one for each wait."""

    run: Seconds = Field(600.0, gt=0, description="The whole run, baseline included.")
    start: Seconds = Field(180.0, gt=0, description="From launch until every rank has begun its first step.")
    fault: Seconds = Field(120.0, gt=0, description="From the first step until a fault's trigger fires.")
    land: Seconds = Field(30.0, gt=0, description="From the injection until its evidence.")
    end: Seconds = Field(300.0, gt=0, description="From the last fault's landing until every rank has exited.")
    stop: Seconds = Field(15.0, gt=0, description="From SIGTERM until SIGKILL during teardown.")


FindingId = Annotated[str, Field(pattern=r"^F-[0-9]{2,}$")]


class Finding(Model):
    """A known defect that runs show differently: with one SDK only, now and then, or in more checks."""

    id: FindingId = Field(description="Its id in docs/reference/findings.md in the repository.")
    sdk: Literal["standin", "vendor"] | None = Field(
        None, description="The only SDK with which it has an effect. Default: both."
    )
    always: bool = Field(
        True,
        description="Whether every run shows it: then a passing run reports that it no longer holds.",
    )
    with_vendor: tuple[str, ...] = Field(
        (), strict=False, description="Further checks that may fail with the vendor's SDK."
    )


class Scenario(Model):
    """A scenario file after variables and one matrix cell have been filled in."""

    chaos: Literal[1] = Field(description="Version of the scenario language; the first key of the file.")
    name: str = Field(pattern=NAME, max_length=100, description="Name of the scenario.")
    description: str = Field("", description="Claim that the scenario proves.")
    tags: tuple[Tag, ...] = Field((), strict=False, description="Become pytest markers.")
    variables: dict[str, Any] = Field({}, description="Values for ${name}; the command line can set them.")
    matrix: dict[str, list[Any]] = Field({}, description="One cell for every combination; overrides variables.")
    cluster: Cluster = Field(description="Platform, nodes, ranks and parallel sizes.")
    job: Job = Field(description="The training job, and the mechanisms that protect it.")
    faults: tuple[Fault, ...] = Field((), strict=False, max_length=MAX_FAULTS, description="The fault schedule.")
    allow: tuple[str, ...] = Field(
        (),
        strict=False,
        description="Fault kinds that may disturb more than the job, allowed by name: device-reset, node-cordon, "
        "node-drain, node-not-ready, node-reboot, npu-link-down, public-fault.",
    )
    expect: Expect = Field(Expect.model_construct(), description="Expectations beyond the plan.")
    checks: tuple[OwnCheck, ...] = Field(
        (),
        strict=False,
        max_length=MOST,
        description="Checks of your own, as module:function of a Python file beside the scenario "
        "(docs/guides/own-code.md in the repository).",
    )
    hooks: Hooks = Field(Hooks.model_construct(), description="Commands of your own around a run.")
    compare: Compare | None = Field(None, description="Comparison of cells of the matrix.")
    baseline: str = Field("auto", description="auto, none, or the directory of an earlier run.")
    keep_checkpoints_mb: int = Field(
        1024, ge=0, description="Checkpoint files larger than this (MB) are kept as digests only."
    )
    deadlines: Deadlines = Field(
        Deadlines.model_construct(),
        description=(
            "Deadlines of the run and of each wait. Those that are not written grow with every rank beyond 16."
        ),
    )
    finding: FindingId | Finding | None = Field(
        None,
        description=(
            "Id of a known defect (docs/reference/findings.md in the repository), which fails the "
            "checks of failing. A mapping where not every run shows it."
        ),
    )
    failing: tuple[str, ...] = Field(
        (),
        strict=False,
        description="The checks that the finding may fail, as [loss, resume]; comparison is that of compare.",
    )

    @property
    def needs_samples(self) -> bool:
        """Whether ranks keep samples of parameters beside digests: where values need not be equal bit for bit."""
        loss = self.expect.loss
        return loss is not None and (loss.tolerance > 0 or bool(loss.state))

    @property
    def known(self) -> Finding | None:
        """The finding with all its fields, even if only its id is written."""
        return Finding(id=self.finding) if isinstance(self.finding, str) else self.finding
