"""Faults of processes beside the ranks: the launcher, msrun's scheduler, and the coordinators of a job kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chaos.plan.draft import Draft
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NEEDS, RESTARTING, switched_on
from chaos.plan.schedule import Scheduled

LAUNCHER, SCHEDULER = "launcher", "scheduler"
_KIND = "kill"


def explain_beside(draft: Draft, faults: Sequence[PlannedFault]) -> Iterator[str]:
    """Yield the fate of the ranks."""
    del faults
    launcher = "the launcher" if draft.traits.launcher_restarts else "msrun"
    for fault in draft.faults:
        if fault.fault.role == LAUNCHER:
            yield (
                f"fault {fault.fault.id} ends the launcher and leaves the ranks alone: SIGKILL of {launcher} reaches "
                "none of its children, so they train on, but nothing would restart a lost rank"
            )


def check_beside(draft: Draft, problems: Problems) -> None:
    """Note faults of such processes that cannot be made, or whose effect on the job is not known."""
    for fault in draft.faults:
        if fault.fault.role is None:
            continue
        _check_moment(fault, problems)
        if fault.fault.kind != _KIND:
            message = f"the {fault.fault.role} can be hit by the fault kind {_KIND} only"
            problems.add(f"{fault.path}.kind", message, text=fault.fault.kind, hint=f"use {_KIND}")
        objection = _objection(draft, fault.fault.role)
        if objection is not None:
            problems.add(f"{fault.path}.target.role", *objection[:1], text=fault.fault.role, hint=objection[1])
        for other in draft.faults:
            if other is not fault and (other.lethal or other.raised):
                problems.add(
                    f"{other.path}.kind",
                    f"fault {other.fault.id!r} calls for a recovery beside fault {fault.fault.id!r} "
                    f"({problems.where(fault.path)}), after which nothing restarts a rank; that is not yet planned by "
                    "this version",
                    text=other.fault.kind,
                    hint="write a scenario for each",
                )


def _objection(draft: Draft, role: str) -> tuple[str, str] | None:
    """Return why this process cannot be hit in this job, or the fault not be judged, and what to do."""
    scenario = draft.scenario
    if role in draft.traits.coordinators:
        return _objection_to_coordinator(draft, role)
    if role not in (LAUNCHER, SCHEDULER):
        return f"job kind {scenario.job.kind!r} has no {role}", "use role: launcher, or kill the ranks"
    if role == SCHEDULER:
        return (
            "without msrun's scheduler the ranks train on for about 22 s (MindSpore 2.10, observed) and then end, at "
            "a step that depends on timing; a rehearsal has no scheduler",
            "use role: launcher, or kill the ranks",
        )
    if not (scenario.job.agent or draft.traits.launcher_restarts):
        return (
            "without job.agent the launcher has ended when it has started the ranks (msrun --join=False), so there is "
            "nothing to hit",
            "set job.agent: true",
        )
    if scenario.cluster.nodes > 1:
        return "every node has a launcher, and the target does not say which", "use one node"
    needing = [mechanism for mechanism in switched_on(scenario.job.protection) if mechanism in NEEDS["MindIO"]]
    if needing:
        return (
            f"with {', '.join(needing)} the SDK's controller lives in the launcher, and ends with it: the ranks look "
            "for it for a while and exit at a step that depends on timing",
            f"switch {RESTARTING} on alone; role: controller with job.controller: rank 0 is the death of a controller "
            "in a rank",
        )
    return None


def _objection_to_coordinator(draft: Draft, role: str) -> tuple[str, str] | None:
    """Return why the end of the job without its coordinator could not be judged, and what to do."""
    if not any(draft.traits.mechanisms and name in draft.traits.mechanisms for name in draft.scenario.job.protection):
        names = " or ".join(sorted(draft.traits.mechanisms or ()))
        return (
            f"without {names} in job.protection nothing is promised of the ranks when the {role} has gone",
            f"write protection: [{names}]",
        )
    return None


def _check_moment(fault: Scheduled, problems: Problems) -> None:
    """Note a trigger that holds a rank: no rank is held for such a process."""
    if any("step" in part or "handler" in part for part in _parts(fault.fault.trigger)):
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} hits no rank, so no rank is held for it at a step or a handler",
            text=", ".join(fault.fault.trigger),
            hint="use elapsed, log or after",
        )


def _parts(trigger: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield trigger
    for key in ("all", "any"):
        for part in trigger.get(key, ()):
            yield from _parts(part)
