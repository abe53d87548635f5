"""Online repair: errors that a device reports, which ones are repaired, and after which step the ranks go on.

The ranks of such a fault keep their processes. All ranks stop, clean up, go back to a common step and train on. Where
no online mechanism answers, the ranks count as lost, and :mod:`chaos.plan.outcome` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from chaos.plan.constraints import Violation
from chaos.plan.describe import group, ranks
from chaos.plan.mechanism import COMMUNICATION, DOCUMENT, MEMORY, switched_on
from chaos.plan.moments import PHASE_ORDER, Point
from chaos.plan.outcome import PROVE_NONE, Outcome, note
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.scenario.model import Scenario
from chaos.topology.survive import survive

EXCHANGE = PHASE_ORDER[: PHASE_ORDER.index("allreduce.enter") + 1]
"""Phases at which a communication error can be raised: those up to the exchange of the gradients."""

FIRST_REPAIRABLE = 2
"""First step in which an error can be repaired: the replica groups are known once step 1 is finished."""


def check_errors(scenario: Scenario, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note errors that cannot be raised where the scenario wants them, and those whose outcome is not known.

    Args:
        scenario: the scenario.
        faults: its faults.
        problems: takes what is wrong.
    """
    raised = [fault for fault in faults if fault.raised]
    for fault in raised:
        _check_trigger(fault, problems)
        _check_promise(scenario, fault, problems)
    _check_mix(faults, problems)
    timed = [fault for fault in raised if fault.moment.exact and fault.repaired_by is not None]
    for fault in timed:
        _check_step(scenario, fault, problems)
    _check_apart(sorted(timed, key=_when), problems)


def derive_repair(
    scenario: Scenario, groups: Sequence[tuple[int, ...]], faults: Sequence[Scheduled], problems: Problems
) -> Outcome | None:
    """The outcome of errors that are repaired online, None if there are none.

    Args:
        scenario: the scenario.
        groups: replica groups.
        faults: its faults, which :func:`check_errors` has found sound.
        problems: takes a repair that is impossible where the scenario does not say that it expects none.
    """
    repaired = sorted((fault for fault in faults if fault.repaired_by is not None), key=_when)
    if not repaired:
        return None
    for fault in repaired:
        hopeless = _no_replica_left(groups, fault)
        if hopeless is None:
            continue
        if scenario.expect.checkpoint != "none":
            note(hopeless, problems, PROVE_NONE)
        _check_reached(fault, faults, problems)
        return Outcome("none", None, (), fault.path, hopeless.message)
    first = repaired[0]
    return Outcome(
        first.repaired_by,
        None,
        (),
        first.path,
        _why(scenario, first),
        repair_steps=tuple(_when(fault).last_complete for fault in repaired),
        repairs=tuple(_repair(fault) for fault in repaired),
    )


def _when(fault: Scheduled) -> Point:
    return fault.moment.earliest


def _check_trigger(fault: Scheduled, problems: Problems) -> None:
    """The agent raises the error while it holds the rank, so the trigger must be one barrier."""
    trigger = fault.fault.trigger
    if not ("step" in trigger and trigger.keys() <= {"step", "phase"}):
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} is an error that a rank raises while it is held at a barrier, so its trigger "
            "must be one step with its phase and nothing else",
            text=", ".join(trigger),
            hint="write step, and phase if it is not step.begin",
        )
    elif fault.effect == COMMUNICATION and trigger["phase"] not in EXCHANGE:
        problems.add(
            f"{fault.path}.trigger.phase",
            f"a communication error arises while the gradients are exchanged, not at {trigger['phase']}",
            text=trigger["phase"],
            hint=f"use one of {', '.join(EXCHANGE)}",
        )


def _check_promise(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    """With HCCE on, MindSpore reports a memory error as such even if UCE is off; nobody says what happens then."""
    on = switched_on(scenario.job.protection)
    if fault.effect != MEMORY or fault.repaired_by is not None or "HCCE" not in on:
        return
    problems.add(
        "job.protection",
        f"{ranks(fault.fault.ranks)} has a memory error ({problems.where(fault.path)}), and HCCE is on without UCE: "
        f"{DOCUMENT} promises nothing for a memory error without UCE, so nothing can be judged",
        text=", ".join(scenario.job.protection),
        hint="add UCE to job.protection, or take HCCE out of it",
    )


def _check_mix(faults: Sequence[Scheduled], problems: Problems) -> None:
    """One run is repaired online by one mechanism, or it loses ranks."""
    repaired = [fault for fault in faults if fault.repaired_by is not None]
    if not repaired:
        return
    first = repaired[0]
    for other in faults:
        if other.lethal:
            what = "takes ranks from the job"
        elif other.repaired_by not in (None, first.repaired_by):
            what = f"calls for {other.repaired_by}"
        else:
            continue
        problems.add(
            f"{other.path}.kind",
            f"fault {first.fault.id!r} ({problems.where(first.path)}) calls for {first.repaired_by} and fault "
            f"{other.fault.id!r} {what}: both in one run is not yet supported by this version",
            text=other.fault.kind,
            hint="write a scenario for each",
        )


def _check_step(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    """The first steps have no replica groups yet, and behind the last all-reduce nobody waits for a repair."""
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
            f"{scenario.job.steps} steps and leave, so nobody waits for a repair, and nothing can be judged",
            text=str(at),
            hint="inject the fault earlier, or let the job train more steps",
        )


def _check_apart(repaired: Sequence[Scheduled], problems: Problems) -> None:
    """Two repairs are two only if no rank can reach the second error before it blocks because of the first."""
    for earlier, later in pairwise(repaired):
        first, second = _when(earlier), _when(later)
        if second > first.block and second.step > first.step:
            continue
        problems.add(
            f"{later.path}.trigger",
            f"fault {later.fault.id!r} at {second} is not apart from fault {earlier.fault.id!r} "
            f"({problems.where(earlier.path)}) at {first}: a rank may reach it before all ranks have stopped for the "
            "first repair, which is not yet supported by this version",
            text=str(second),
            hint=(
                f"use a point behind {max(first.block, Point(first.step, len(PHASE_ORDER) - 1))}, or hit the ranks of "
                "both with one fault"
            ),
        )


def _no_replica_left(groups: Sequence[tuple[int, ...]], fault: Scheduled) -> Violation | None:
    """A replica group whose ranks all have a memory error has no sound copy of the state left."""
    if fault.effect != MEMORY:
        return None
    lost = survive(groups, fault.fault.ranks).lost
    if not lost:
        return None
    return Violation(
        f"{fault.path}.target",
        f"every rank of replica group {group(groups[lost[0]])} has a memory error at the same moment, so no sound copy "
        f"of the state is left: UCE cannot repair it, and the job exits without a checkpoint ({DOCUMENT}, replica "
        "relationships)",
        text=ranks(fault.fault.ranks),
        hint="leave a rank of every replica group alone",
    )


def _check_reached(last: Scheduled, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults that come after the one that ends the job."""
    for fault in faults:
        if fault is not last and _when(fault) > _when(last).block:
            problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} is never reached: fault {last.fault.id!r} ({problems.where(last.path)}) at "
                f"{_when(last)} ends the job",
                text=str(_when(fault)),
                hint="leave one of the two faults out",
            )


def _why(scenario: Scenario, fault: Scheduled) -> str:
    who = f"{ranks(fault.fault.ranks)} {'has' if len(fault.fault.ranks) == 1 else 'have'} a {fault.effect}"
    if fault.repaired_by == "UCE":
        how = "with the state of a replica: no process ends and nothing is saved"
    else:
        how = "and copies nothing, since no rank has lost its state: no process ends and nothing is saved"
    by = ""
    if fault.repaired_by not in scenario.job.protection:
        by = ". HCCE is not on, but with UCE on MindSpore's wrapper around the training handles this error too"
    return f"{who}, and {fault.repaired_by} repairs that online ({DOCUMENT}) {how}{by}"


def _repair(fault: Scheduled) -> str:
    """Why the ranks go on after this step."""
    at, who = _when(fault), ranks(fault.fault.ranks)
    step = at.last_complete
    copied = f", {who} with the state of a replica" if fault.repaired_by == "UCE" else ""
    if at.contributed:
        return (
            f"the {fault.effect} comes at {at}, behind the all-reduce: the others finish step {at.step} and block in "
            f"step {at.step + 1}, so all go on after step {step}{copied}"
        )
    return (
        f"the {fault.effect} comes at {at}, before the gradients are in: no rank can finish step {at.step}, so all go "
        f"on after step {step}{copied}, and step {at.step} is replayed"
    )
