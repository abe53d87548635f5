"""The vendor's constraints: requirements on a layout, and losses that cannot be saved. One function for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from chaos.plan.describe import group, ranks
from chaos.plan.recovery.mechanism import IMPLIES, NEEDS, SAVING, need_message, switched_on
from chaos.plan.recovery.registry import Names, mechanisms
from chaos.plan.recovery.steps import Loss
from chaos.plan.recovery.vendor import MINDSPORE, Vendor
from chaos.plan.topology.layout import Layout
from chaos.plan.topology.survive import survive
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Mechanism

CONTROLLER_RANK = 0
"""The rank that hosts the controller when it does not live outside the ranks."""


@dataclass(frozen=True)
class Violation:
    """A constraint that the scenario violates: the offending key, the problem with its rule, and the remedy."""

    path: str
    message: str
    text: str = ""
    hint: str = ""


def layout_violations(
    scenario: Scenario, layout: Layout, on: Iterable[Mechanism], vendor: Vendor = MINDSPORE
) -> tuple[Violation, ...]:
    """Return the violated constraints of the mechanisms that are on, on layout and job, whatever fault comes.

    They are MindSpore's: a job with another framework's fault tolerance brings its own.
    """
    if vendor != MINDSPORE:
        return ()
    checks: tuple[Callable[[Scenario, Layout, Mechanism], Violation | None], ...] = (
        no_replica,
        one_optimizer_copy,
        sink_above_one,
    )
    violations = [check(scenario, layout, mechanism) for mechanism in on for check in checks]
    violations += [unknown_strategy(scenario), never_registered(on)]
    return tuple(violation for violation in violations if violation is not None)


def unknown_strategy(scenario: Scenario) -> Violation | None:
    """Return the use of the one of MindCluster's six strategies that is not for MindSpore."""
    if "elastic-training" not in scenario.job.strategies:
        return None
    return Violation(
        "job.strategies",
        "the strategy elastic-training is for jobs of PyTorch only (Ascend Operator: environment variables that are "
        "injected), so a job of MindSpore cannot have it",
        text="elastic-training",
        hint="leave it out; the others are retry, recover-in-place, recover, dump and exit",
    )


_ONLY_ONE = Names(lambda mechanism: mechanism.only_one)
"""Mechanisms that MindSpore takes for the only one where no mechanism is on that saves a state."""


def never_registered(on: Iterable[Mechanism]) -> Violation | None:
    """Return the lack of a state-saving mechanism beside TRE or TSP, which MindSpore then takes for the only one.

    MindSpore then registers no handlers of the other mechanisms with the SDK, and says nothing. Source: MindSpore 2.10,
    ``TrainFaultTolerance._only_enable_tre`` and ``_only_enable_tsp``.
    """
    names = set(on)
    alone = next((mechanism for mechanism in _ONLY_ONE if mechanism in names), None)
    off = next((mechanism for mechanism in NEEDS["MindIO"] if mechanism in names and mechanism != alone), None)
    if alone is None or off is None or not SAVING.isdisjoint(switched_on(names)):
        return None
    saving = [mechanism for mechanism in mechanisms() if not SAVING.isdisjoint(switched_on((mechanism,)))]
    return Violation(
        "job.protection",
        f"{alone} silently switches {off} off: where none of {', '.join(saving[:-1])} and {saving[-1]} is on, "
        f"MindSpore takes {alone} for the only mechanism and registers nothing for {off} with the SDK (2.10, "
        f"TrainFaultTolerance._only_enable_{alone.lower()})",
        text=off,
        hint=f"switch {SAVING} on as well, or take {off} out",
    )


def no_replica(scenario: Scenario, layout: Layout, mechanism: Mechanism) -> Violation | None:
    """Return the lack of replicas: data parallelism must leave two ranks with the same weights."""
    rule = need_message(mechanism, "replicas")
    if rule is None or layout.data > 1:
        return None
    return Violation(
        "cluster.ranks" if scenario.cluster.parallel is None else "cluster.parallel.data_parallel",
        f"no rank has a replica: data_parallel is 1. {_by(scenario, mechanism)}{rule}",
        text=str(layout.data),
        hint="set data_parallel to 2 or more",
    )


def one_optimizer_copy(scenario: Scenario, layout: Layout, mechanism: Mechanism) -> Violation | None:
    """Return the lack of optimizer copies.

    With optimizer parallelism, data_parallel / optimizer_weight_shard_size copies must be at least two.
    """
    rule = need_message(mechanism, "replicas")
    if rule is None or layout.data == 1 or layout.copies > 1:
        return None
    if layout.shard != "none":
        return Violation(
            "cluster.parallel.shard",
            f"the shards of the state are there once (copies). {_by(scenario, mechanism)}{rule}",
            text=layout.shard,
            hint="cluster.parallel.copies must be 2 or more",
        )
    written = scenario.cluster.parallel and scenario.cluster.parallel.optimizer_weight_shard_size
    size = f"optimizer_weight_shard_size {layout.shards}"
    if written is None:
        size = "optimizer_weight_shard_size by default the whole data-parallel group"
    return Violation(
        "cluster.parallel.optimizer_weight_shard_size",
        f"the optimizer shards leave one copy: data_parallel {layout.data}, {size}. {_by(scenario, mechanism)}{rule}",
        text="" if written is None else str(written),
        hint="data_parallel / optimizer_weight_shard_size must be 2 or more",
    )


def sink_above_one(scenario: Scenario, layout: Layout, mechanism: Mechanism) -> Violation | None:
    """Return a sink of several steps: step-level recovery needs one step in a sink."""
    rule = need_message(mechanism, "sink size 1")
    size = scenario.job.sink_size
    if rule is None or size == 1:
        return None
    return Violation(
        "job.sink_size",
        f"the sink size is {size}. {_by(scenario, mechanism)}{rule}",
        text=str(size),
        hint=f"set job.sink_size: 1, or take {mechanism} out of job.protection",
    )


def _by(scenario: Scenario, mechanism: Mechanism) -> str:
    """Return the origin of a mechanism that the scenario does not name."""
    if mechanism in scenario.job.protection:
        return ""
    by = next(other for other in scenario.job.protection if IMPLIES.get(other) == mechanism)
    return f"{by} switches {mechanism} on; "


def loss_violations(
    scenario: Scenario,
    groups: Sequence[tuple[int, ...]],
    dead: Collection[int],
    silent: Collection[int],
    loss: Loss,
    *,
    cause: str,
    controller_cause: str,
    vendor: Vendor = MINDSPORE,
) -> tuple[Violation, ...]:
    """Return why no end-of-life checkpoint can be saved when these ranks are lost; empty when it can.

    Args:
        scenario: the scenario.
        groups: replica groups.
        dead: every rank that is lost.
        silent: the lost ranks whose process has ended or stopped; the others still run a controller that they host.
        loss: how the training stops.
        cause: path of the fault that stops it.
        controller_cause: path of the fault that takes rank 0, if one does.
        vendor: whose fault tolerance it is.
    """
    violations = (
        controller_lost(scenario, silent, controller_cause, vendor),
        group_lost(groups, dead, cause, vendor),
        nothing_trained(loss, cause, scenario.job.steps_per_update or 1),
    )
    return tuple(violation for violation in violations if violation is not None)


def controller_lost(
    scenario: Scenario, silent: Collection[int], cause: str, vendor: Vendor = MINDSPORE
) -> Violation | None:
    """Return the loss of a controller inside rank 0: it dies with the rank, and nobody is left to order the save."""
    if scenario.job.controller != "rank 0" or CONTROLLER_RANK not in silent:
        return None
    return Violation(
        f"{cause}.target",
        f"rank {CONTROLLER_RANK} hosts the MindIO TFT controller and is lost, so no end-of-life checkpoint is saved "
        f"({vendor.document}, end-of-life CKPT; {vendor.losses}, exception injection)",
        text=f"rank {CONTROLLER_RANK}",
        hint='hit another rank (a random target can leave it out with "among"), or set job.controller: outside',
    )


def group_lost(
    groups: Sequence[tuple[int, ...]], dead: Collection[int], cause: str, vendor: Vendor = MINDSPORE
) -> Violation | None:
    """Return the loss of a replica group without a survivor: it takes its part of the state with it."""
    lost = survive(groups, dead).lost
    if not lost:
        return None
    which = f"replica group {group(groups[lost[0]])}"
    if len(lost) > 1:
        which = f"{len(lost):,} replica groups ({group(groups[lost[0]])} is the first)"
    return Violation(
        f"{cause}.target",
        f"every rank of {which} is lost, so no complete copy of the state is left and no end-of-life checkpoint is "
        f"saved ({vendor.losses}, overview)",
        text=ranks(sorted(dead)),
        hint="leave a rank of every replica group alive",
    )


def nothing_trained(loss: Loss, cause: str, steps_per_update: int = 1) -> Violation | None:
    """Return the lack of a state to save: no complete step or, for the SDK, no update."""
    if loss.highest >= steps_per_update:
        return None
    if loss.highest > 0:
        return Violation(
            f"{cause}.trigger",
            f"the ranks are lost before step {steps_per_update} makes the first update (job.steps_per_update); the SDK "
            "counts updates, so it exits without an end-of-life checkpoint",
            hint=f"inject the fault after step {steps_per_update}",
        )
    return Violation(
        f"{cause}.trigger",
        "the ranks are lost before step 1 is complete; the SDK then exits without an end-of-life checkpoint",
        hint="inject the fault after step 1",
    )


def nothing_left(loss: Loss, last_step: int, cause: str) -> Violation | None:
    """Return a loss behind the last all-reduce: no rank waits for the lost one, so no recovery can be judged."""
    if loss.at is None or loss.highest < last_step:
        return None
    what = (
        f"after the last all-reduce of the job: whoever is left finishes all {last_step} steps, no mechanism has "
        "anything to recover,"
        if loss.at.last_complete == last_step
        else f"and {ranks(loss.ahead)} of other replica groups may finish all {last_step} steps and leave, or may not,"
    )
    return Violation(
        f"{cause}.trigger",
        f"the ranks are lost at {loss.at}, {what} and nothing can be judged",
        text=str(loss.at),
        hint="inject the fault earlier, or let the job train more steps",
    )
