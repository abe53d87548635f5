"""Partitions: the ones that nobody notices, and the fate of ranks that are cut off for longer.

The SDK's controller knows a rank by its heartbeat alone: a rank that is cut off for longer than a heartbeat may be
missing is lost to it, as if it had ended. The controller's side does what is promised for lost ranks. The other side
gets no message from anybody, so it trains no step that needs the others, saves nothing, and ends: with the launch, or,
where the network comes back before, because it finds no controller any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from chaos.plan.budgets import profile_of
from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.family_rules import Occurrence
from chaos.plan.job_effect import NONE, JobEffect
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import SAVING, switched_on
from chaos.plan.recovery.registry import Facts
from chaos.plan.schedule import Scheduled
from chaos.plan.topology.layout import Layout
from chaos.plan.triggers import parts
from chaos.scenario.models.ids import fault_ids
from chaos.scenario.models.scenario import Scenario

PARTITION = "partition"
"""The kind."""

UNNOTICED = 2.0
"""Seconds of a partition that nobody has to answer.

With TCP's wait until it sends again it stays below the shortest silence after which a rank counts as lost (5 s).
"""

_CONTROLLER_NODE = 0
"""The controller's node, in rank 0 or beside the ranks."""

_NOT_CUT_OFF = Facts(lambda mechanism: mechanism.cut_off)
"""The reason why a mechanism is not planned together with nodes that are cut off."""

_HOLD_UP = (PARTITION, "port-blocked", "network-delay", "network-loss", "network-rate")
"""Kinds that hold up packets; without them all packets of a rank have reached the others when it is held."""

_SEARCH: Mapping[str, float] = MappingProxyType({"fast": 1.0, "vendor": 75.0})
"""Seconds, by timing profile, for which a rank looks for a controller that has gone (TTP_RETRY_TIMES)."""

_LONGEST_WAIT = 120.0
"""Longest wait of TCP until it sends again, in seconds (TCP_RTO_MAX in Linux)."""


def settle_partition(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """Return no effect for a partition that is over before a heartbeat is missed; other faults keep their effect."""
    del problems
    seconds = occurrence.fault.parameters.get("seconds")
    brief = isinstance(seconds, int | float) and seconds <= UNNOTICED
    return NONE if occurrence.fault.kind == PARTITION and brief else effect


def _is_cut_off(fault: PlannedFault) -> bool:
    """Return whether the fault is a partition that makes its ranks lost to the controller."""
    return fault.kind == PARTITION and fault.effect.suspends


def _ends_by_itself(fault: PlannedFault) -> bool:
    """Return whether the fault is such a partition whose ranks have to end by themselves."""
    return _is_cut_off(fault) and "seconds" in fault.parameters


def waits_for_the_end(draft: Draft) -> float:
    """Return the seconds by which the job is started again later, for the sake of partitions that end before it."""
    return _waits_for(draft.scenario, draft.faults)


def _waits_for(scenario: Scenario, faults: Sequence[Scheduled]) -> float:
    """Return the seconds until the ranks that these partitions cut off have ended.

    Each partition lasts for its ``seconds``. A rank that was cut off notices nothing until TCP sends again, and each of
    TCP's waits is as long as all before it; then the rank looks for the controller for a while.
    """
    search = _SEARCH.get(scenario.job.timings, 0.0)
    cut = [float(fault.fault.parameters["seconds"]) for fault in faults if _ends_by_itself(fault.fault)]
    return max((seconds + min(seconds, _LONGEST_WAIT) + search for seconds in cut), default=0.0)


def explain_partitions(draft: Draft, faults: Sequence[PlannedFault]) -> Iterator[str]:
    """Yield the fate of the ranks that are cut off, for each such fault."""
    del draft
    for fault in faults:
        if _is_cut_off(fault):
            end = "they are ended with the launch"
            if _ends_by_itself(fault):
                seconds = fault.parameters["seconds"]
                end = f"when the network is back after {seconds:g} s they find no controller and end by themselves"
            yield (
                f"{ranks(fault.ranks)}, cut off by fault {fault.id}, live on without any message: the controller "
                f"misses their heartbeats, they save nothing, and {end}"
            )


def check_partitions(draft: Draft, problems: Problems) -> None:
    """Note partitions that take ranks from the job where the effect on the job is not known."""
    scenario = draft.scenario
    cut = [fault for fault in draft.faults if _is_cut_off(fault.fault)]
    for fault in cut:
        _check_direction(fault, problems)
        _check_sides(fault, draft.layout, problems)
        _check_mechanisms(scenario, fault, problems)
        _check_seconds(scenario, fault, problems)
        _check_moment(fault, draft.faults, problems)
    _check_waiting(scenario, {fault.fault.id for fault in cut}, problems)


def _check_direction(fault: Scheduled, problems: Problems) -> None:
    direction = fault.fault.parameters.get("direction", "both")
    if direction != "both":
        problems.add(
            f"{fault.path}.parameters.direction",
            f"fault {fault.fault.id!r} lasts until ranks count as lost, and lets through what goes the other way: it "
            "is not known when which side misses the other, and which ranks finish a step with the data that still "
            "arrives",
            text=direction,
            hint=f"leave direction out, or give seconds of at most {UNNOTICED:g}, in which no rank is lost",
        )


def _check_sides(fault: Scheduled, layout: Layout, problems: Problems) -> None:
    """Note a partition of parts of nodes, or of the controller's node, whose side is the job; the other is lost."""
    hit = set(fault.fault.ranks)
    nodes = sorted({rank // layout.ranks_per_node for rank in hit})
    spared = [rank for node in nodes for rank in layout.node_ranks(node) if rank not in hit]
    path = f"{fault.path}.target"
    if spared:
        problems.add(
            path,
            f"fault {fault.fault.id!r} lasts until ranks count as lost, and cuts off {ranks(spared)} too, on the same "
            "nodes as its target",
            text=ranks(fault.fault.ranks),
            hint="target whole nodes: node: N, or all of their ranks",
        )
    elif _CONTROLLER_NODE in nodes:
        others = [rank for node in range(layout.nodes) if node not in nodes for rank in layout.node_ranks(node)]
        what = f"which is {ranks(others)}" if others else "and there is none"
        problems.add(
            path,
            f"fault {fault.fault.id!r} cuts node {_CONTROLLER_NODE}, where the SDK's controller is, from all others: "
            f"lost to the controller is the other side, {what}, not the target",
            text=ranks(fault.fault.ranks),
            hint=f"target {ranks(others)}: it is the same cut" if others else "target another node",
        )


def _check_mechanisms(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    on = switched_on(scenario.job.protection)
    if SAVING.isdisjoint(on):
        problems.add(
            "job.protection",
            f"no mechanism is promised to detect fault {fault.fault.id!r} ({problems.where(fault.path)}): the "
            f"processes live and their connections stay, and without {SAVING} no controller misses a heartbeat",
            hint=f"add {SAVING}, or give the fault seconds of at most {UNNOTICED:g}",
        )
    for mechanism, why in _NOT_CUT_OFF.items():
        if mechanism in on:
            problems.add(
                "job.protection",
                f"with {mechanism} no outcome is planned for fault {fault.fault.id!r} ({problems.where(fault.path)}): "
                f"{why}",
                text=mechanism,
                hint=f"take {mechanism} out, or use kill with the same target for nodes that come back as new",
            )


def _check_seconds(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    """Note a partition that ends while the controller may still find that the ranks are there after all."""
    seconds = fault.fault.parameters.get("seconds")
    if not isinstance(seconds, int | float):
        return
    path = f"{fault.path}.parameters.seconds"
    profile = profile_of(scenario.job.timings, next(iter(SAVING)), scenario.cluster.ranks)
    if profile.silence is None or "stop" not in profile.phases:
        problems.add(
            path,
            "it is not stated when ranks count as lost, and whether they end when they find no controller, for "
            f"timings {scenario.job.timings}",
            text=seconds,
            hint=f"leave seconds out: it lasts until the launch has ended; up to {UNNOTICED:g} s no rank is lost",
        )
        return
    least = profile.silence + profile.phases["stop"] + profile.unanswered
    if seconds < least:
        problems.add(
            path,
            f"with timings {scenario.job.timings} ranks may count as lost after more than {UNNOTICED:g} s, and the "
            f"controller may take {least:g} s (the budgets of detection and stop) until it has chosen what to do: a "
            f"network that returns after {seconds:g} s may return before, during or after that",
            text=seconds,
            hint=f"use up to {UNNOTICED:g}, or {least:g} and more, or leave seconds out: it lasts until the launch has "
            "ended",
        )
    elif (longest := _waits_for(scenario, [fault])) > scenario.deadlines.end:
        problems.add(
            path,
            f"the ranks cut off for {seconds:g} s may take {longest:g} s more to end, but deadlines.end gives them "
            f"{scenario.deadlines.end:g} ({problems.where('deadlines.end')})",
            text=seconds,
            hint="make it shorter, or deadlines.end longer",
        )


def _check_moment(fault: Scheduled, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note a partition at a moment when not all ranks train: in a recovery or a pause its effect is not known."""
    if fault.handler is not None:
        problems.add(
            f"{fault.path}.trigger.handler",
            f"fault {fault.fault.id!r} cuts ranks off inside a recovery: they may finish their part, and the "
            "controller never learns of it; that is not planned",
            text=fault.handler,
            hint="give a step",
        )
    for other in faults:
        if other is not fault and other.fault.kind in _HOLD_UP:
            problems.add(
                f"{fault.path}.kind",
                f"fault {fault.fault.id!r} cuts off what fault {other.fault.id!r} ({problems.where(other.path)}) may "
                "have held up: it is not known which step the others can end with the data they have",
                text=fault.fault.kind,
                hint="use a scenario for each",
            )
        if other.effect.pauses:
            problems.add(
                f"{fault.path}.kind",
                f"fault {fault.fault.id!r} and the pause {other.fault.id!r} ({problems.where(other.path)}): ranks "
                "that are cut off do not learn that the pause has begun or ended; that is not planned",
                text=fault.fault.kind,
                hint="use a scenario for each",
            )


def _check_waiting(scenario: Scenario, cut: set[str], problems: Problems) -> None:
    """Note a fault that comes behind a partition: the end of a partition is behind the end of the training."""
    for index, (name, fault) in enumerate(zip(fault_ids(scenario.faults), scenario.faults, strict=True)):
        for path, trigger in parts(fault.trigger, f"faults.{index}.trigger"):
            if trigger.healed in cut:
                problems.add(
                    f"{path}.healed",
                    f"fault {name!r} waits for the end of {trigger.healed!r}, and by then the remaining side has "
                    "saved and ended",
                    text=trigger.healed,
                    hint=f"use after: {trigger.healed}, or a step before it",
                )
