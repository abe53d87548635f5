"""FT: replica groups of torchft train on without a lost group; started again, it gets its state from another group.

Source: torchft, Manager and Lighthouse (0.2). The others notice a lost group when its heartbeats have been missing for
a while; the step that it leaves open is trained again without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.mechanisms.ft.lighthouse_plan import without_lighthouse
from chaos.plan.describe import are_lost, count, ranks
from chaos.plan.parts.response import Recovery
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Answer, Context
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario

NAME = "FT"

DOCUMENT = "torchft, Manager"


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return the healing of the lost groups; None where FT is off.

    With fewer groups than the lighthouse asks for, or with no restart left, no group can train on: the job ends.
    """
    if NAME not in context.on:
        return None
    if any(fault.effect.strands for fault in incident.faults):
        return without_lighthouse(context, incident)
    scenario, lost, cause = context.scenario, incident.hit, incident.first.path
    loss, left = context.loss(incident), scenario.cluster.ranks - len(incident.hit)
    if loss.at is None:
        context.problems.add(
            f"{cause}.trigger",
            "the trigger leaves the step open, so it is not known from which step on a group is missing",
            hint="give the step and the phase",
        )
        return Answer(None, "", cause, ends=True, loss=loss, dead=lost)
    if left < max(1, scenario.job.torchft.min_groups):
        context.problems.add(
            f"{incident.first.path}.target",
            f"{are_lost(lost)}, and fewer groups than job.torchft.min_groups are left ({left}): these wait for the "
            "lost ones, and that is not yet planned by this version",
            text=", ".join(map(str, lost)),
            hint="lose fewer groups",
        )
    step = loss.at.last_complete
    _check_ended(context, incident)
    _check_apart(context, incident)
    _check_limit(context, incident)
    _check_early(context, incident, step)
    restarted = tuple(sorted({rank for fault in incident.faults if not stops(fault) for rank in fault.fault.ranks}))
    whose = f"the new {'process' if len(lost) == 1 else 'processes'} of {ranks(lost)}"
    back = whose if restarted == lost else f"{ranks(lost)}, continued or started again,"
    why = (
        f"{are_lost(lost)}, and with {NAME} the other replica groups train on ({DOCUMENT}); {back} will get the state "
        "of another group"
    )
    how = (
        f"the groups commit step {step} together, stand still until {_missed(context, incident)}, and commit further "
        f"steps with {count(left, 'group')} until all are back"
    )
    return Answer(Recovery(NAME, incident.ids, step, restarted=restarted, copied=lost), why, cause, how=how)


def stops(fault: Scheduled) -> bool:
    """Return whether the groups of a fault are stopped for a time, and live on."""
    return fault.effect.suspends and "seconds" in fault.fault.parameters


def longest_stand_still(scenario: Scenario, faults: Sequence[Scheduled]) -> float:
    """Return the seconds after which the groups that are left commit a step again.

    A collective with a stopped group gives up after the timeout only: its connections stay.
    """
    missed = scenario.job.torchft.heartbeat_timeout
    return missed + scenario.job.torchft.timeout if any(map(stops, faults)) else missed


def _missed(context: Context, incident: Incident) -> str:
    """Return what lets the other groups go on, in words."""
    options, lost = context.scenario.job.torchft, ranks(incident.hit)
    heartbeats = f"the lighthouse misses the heartbeats of {lost} for {options.heartbeat_timeout:g} s"
    if not any(map(stops, incident.faults)):
        return heartbeats
    collective = f"their collective, where one is open, gives up after {options.timeout:g} s (job.torchft.timeout)"
    return f"{collective}, and {heartbeats}"


def _check_ended(context: Context, incident: Incident) -> None:
    """Note groups that are silent and live on: they come back only where the fault ends, and after they are missed."""
    least = longest_stand_still(context.scenario, incident.faults)
    for fault in incident.faults:
        if stops(fault):
            if fault.fault.parameters["seconds"] < least:
                context.problems.add(
                    f"{fault.path}.parameters.seconds",
                    f"the other groups may wait for {ranks(fault.fault.ranks)} for {least:g} s (job.torchft.timeout "
                    "and job.torchft.heartbeat_timeout), so it is not known whether it counts as lost before that",
                    text=fault.fault.parameters["seconds"],
                    hint=f"use {least:g} at least, or shorter timeouts; a stop of up to 3 s is the kind freeze",
                )
        elif not fault.effect.ends and not fault.raised:
            context.problems.add(
                f"{fault.path}.kind",
                f"{ranks(fault.fault.ranks)} falls silent and lives on, so nothing starts it again: when such a group "
                "is back, and with which state, is not yet planned by this version",
                text=fault.fault.kind,
                hint="use a kind that ends the process, or suspend with parameters.seconds",
            )


def _check_apart(context: Context, incident: Incident) -> None:
    """Note a second incident: which step it finds the groups in, and whether the first group is back, is not known."""
    if context.before:
        context.problems.add(
            f"{incident.first.path}.trigger",
            f"fault {incident.first.fault.id!r} may come before the groups lost first are back: a second loss is not "
            "yet planned by this version",
            text=incident.first.fault.id,
            hint="write a scenario for each",
        )
    later = [fault for fault in incident.faults if fault.moment != incident.first.moment]
    if later:
        context.problems.add(
            f"{later[0].path}.trigger",
            f"fault {later[0].fault.id!r} hits another group at another point than {incident.first.fault.id!r}, which "
            "is not yet planned by this version",
            text=later[0].fault.id,
            hint="hit both with one fault",
        )


def _check_limit(context: Context, incident: Incident) -> None:
    """Note a job whose lost group is not started again: the others may train on to the end, and nothing heals."""
    if context.scenario.job.restart_limit < 1:
        context.problems.add(
            "job.restart_limit",
            f"{ranks(incident.hit)} would not be started again, and that is not yet planned by this version",
            text=str(context.scenario.job.restart_limit),
            hint="allow one restart at least",
        )


def _check_early(context: Context, incident: Incident, step: int) -> None:
    """Note a loss before the first common step, and one after which nothing is left to train."""
    if 1 <= step < context.scenario.job.steps:
        return
    context.problems.add(
        f"{incident.first.path}.trigger",
        f"the last step that all groups commit together would be step {step} of {context.scenario.job.steps}: the "
        "training after the fault, and the healing, could not be judged",
        text=str(incident.first.moment.earliest),
        hint="use a step in the middle",
    )
