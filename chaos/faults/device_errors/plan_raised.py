"""Errors that a device reports: the places where they can be raised, and the ones whose outcome is known."""

from __future__ import annotations

from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.job_effect import COMMUNICATION_ERROR, UNKNOWN_ERROR
from chaos.plan.points import EXCHANGE, Point
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import RESTARTING, switched_on
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario

_UPDATE = "optimizer.update"

LINK = "link"
"""The fault kind that breaks a link in the device layer."""

EXCEPTION_MARKS = (
    "UCEError",
    "HCCEError",
    "SuspectRemoteError",
    "ForceStopError",
    "ARF FINISH",
    "STEP FINISH",
    "TREError",
)
"""Marks by which MindSpore's wrapper distinguishes errors (train/model.py of 2.10)."""

FIRST_REPAIRABLE = 2
"""First step in which an error can be repaired: the replica groups are known once step 1 is finished."""


def check_raised(draft: Draft, problems: Problems) -> None:
    """Note errors that cannot be raised at the scenario's place, and errors whose outcome is not known."""
    scenario = draft.scenario
    raised = [fault for fault in draft.faults if fault.raised]
    for fault in raised:
        _check_trigger(fault, problems)
        if draft.kinds[fault.fault.kind].on_rank.breaks_link:
            _check_link(scenario, fault, problems)
    timed = [fault for fault in raised if fault.moment.exact and fault.repaired_by is not None]
    for fault in timed:
        _check_step(scenario, fault, problems)
    for fault in draft.faults:
        _check_text(fault, problems)


def _check_text(fault: Scheduled, problems: Problems) -> None:
    """Note an exception that MindSpore takes for another."""
    text = fault.fault.parameters.get("text")
    marks = [mark for mark in EXCEPTION_MARKS if mark in text] if isinstance(text, str) else []
    if fault.effect.raises == UNKNOWN_ERROR and marks:
        problems.add(
            f"{fault.path}.parameters.text",
            f"MindSpore takes an error with {marks[0]!r} in its text for another one than it is",
            text=text,
            hint="write another text, or use the fault kind of that error",
        )


def _when(fault: Scheduled) -> Point:
    return fault.moment.earliest


def _check_trigger(fault: Scheduled, problems: Problems) -> None:
    """Note a trigger other than one barrier: the agent raises the error while it holds the rank."""
    trigger = fault.fault.trigger
    if fault.handler is not None:
        return  # the agent holds the rank at the entry of a handler, too
    if not ("step" in trigger and trigger.keys() <= {"step", "phase"}):
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} is an error that a rank raises while it is held at a barrier, so its trigger "
            "must be one step with its phase and nothing else",
            text=", ".join(trigger),
            hint="write step, and phase if it is not step.begin",
        )
    elif fault.effect.spares_memory and fault.repaired_by is not None and trigger["phase"] == _UPDATE:
        problems.add(
            f"{fault.path}.trigger.phase",
            f"{ranks(fault.fault.ranks)} would be a step behind: the others finish step {trigger['step']}, the error "
            "comes before its own update, and a memory error without loss copies nothing; the outcome is not "
            "documented",
            text=trigger["phase"],
            hint="use a phase before the update or behind it, or the strategy high level",
        )
    elif fault.effect.raises == COMMUNICATION_ERROR and trigger["phase"] not in EXCHANGE:
        problems.add(
            f"{fault.path}.trigger.phase",
            f"a communication error arises while the gradients are exchanged, not at {trigger['phase']}",
            text=trigger["phase"],
            hint=f"use one of {', '.join(EXCHANGE)}",
        )


def _check_link(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    """Note a link that is down in a job that is not started again.

    In a job that is started again, it does not matter which ranks give up.
    """
    if scenario.job.hccl is None and fault.fault.kind == LINK:
        problems.add(
            f"{fault.path}.kind",
            "without job.hccl the timeout of a collective over the broken link is unknown",
            text=LINK,
            hint="write job.hccl, for example hccl: {watchdog: false, time_scale: 0.01}",
        )
    mechanisms = [mechanism for mechanism in switched_on(scenario.job.protection) if mechanism not in RESTARTING]
    if mechanisms:
        problems.add(
            "job.protection",
            f"with {', '.join(mechanisms)} the outcome of a broken link depends on the order in which the ranks give "
            f"up ({problems.where(fault.path)}): if all give up at once, no rank is left to save",
            text=mechanisms[0],
            hint=f"switch {RESTARTING} on alone, or use the fault kind hcce",
        )


def _check_step(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    """Note a step that is too early or too late for a repair.

    The first steps have no replica groups yet, and behind the last all-reduce nobody waits for a repair.
    """
    at = _when(fault)
    if at.step < FIRST_REPAIRABLE:
        problems.add(
            f"{fault.path}.trigger.step",
            f"fault {fault.fault.id!r} comes at {at}: the SDK learns the replica groups when step 1 is finished, and "
            "an error before or at step 1 hangs the job instead of being repaired",
            text=at.step,
            hint=f"use a step from {FIRST_REPAIRABLE}",
        )
    if at.last_complete >= scenario.job.steps:
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} comes at {at}, after the last all-reduce of the job: the others finish all "
            f"{scenario.job.steps} steps and leave, so no rank waits for a repair, and nothing can be judged",
            text=str(at),
            hint="inject the fault earlier, or let the job train more steps",
        )
