"""UCE and HCCE: errors that a device reports, repaired while every process lives on.

All ranks stop, clean up, go back to a common step and train on. Where no online mechanism answers, the ranks count as
lost, and another mechanism decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.plan.describe import group, ranks
from chaos.plan.parts.response import Recovery
from chaos.plan.problems import Problems
from chaos.plan.recovery.handlers import sharing, spoilers
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.mechanism import RESTARTING, switched_on
from chaos.plan.recovery.registry import Names
from chaos.plan.recovery.response import PROVE_NONE, Answer, Context, note
from chaos.plan.recovery.vendor import MINDSPORE, Vendor
from chaos.plan.rules.constraints import Violation
from chaos.plan.schedule import Scheduled
from chaos.plan.topology.survive import survive
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

_FOLLOWING = Names(lambda mechanism: mechanism.starts_ranks)
"""Mechanisms that may follow a failed repair: they start ranks anew. An end-of-life checkpoint may not."""


def answer(mechanism: str, context: Context, incident: Incident) -> Answer | None:
    """Return a repair by ``mechanism``; None for an incident that it does not repair online."""
    fault = incident.first
    if fault.repaired_by != mechanism or incident.failed:
        return None
    hopeless = _no_replica_left(context, fault)
    if hopeless is not None:
        if context.scenario.expect.checkpoint != "none":
            note(hopeless, context.problems, PROVE_NONE)
        else:
            _check_restart(context, mechanism, fault)
        why = hopeless.message
        if context.scenario.job.agent:
            why = f"{why}. The SDK offers no repair then, so the cluster's agent can choose nothing but exit"
        return Answer(None, why, fault.path, ends=True)
    complete = fault.moment.earliest.last_complete
    step = context.last_update(complete)
    copied = fault.fault.ranks if fault.effect.loses_memory else ()
    everyone = tuple(range(context.scenario.cluster.ranks))
    copying = sharing(context.groups, copied)  # nothing is copied where no state was lost
    entered = {"stop": everyone, "clean": everyone, "repair": copying}
    spoilt = spoilers(context, incident, mechanism, entered)
    if spoilt:
        why = f"{mechanism} is tried on the {fault.effect} of {ranks(fault.fault.ranks)} and fails: {_spoils(spoilt)}"
        recovery = Recovery(mechanism, incident.ids, step, succeeds=False, copied=copied)
        left = incident.after(mechanism, spoilt)
        if _FOLLOWING & set(context.on):
            return Answer(recovery, why, spoilt[0].path, left=left)
        return _ends(context, incident, Answer(recovery, why, spoilt[0].path, left=left))
    recovery = Recovery(mechanism, incident.ids, step, copied=copied)
    return Answer(recovery, _why(context, fault), fault.path, how=context.goes_back(complete) or _how(fault))


def _check_restart(context: Context, mechanism: str, fault: Scheduled) -> None:
    for restarting in (name for name in RESTARTING if name in context.on):
        context.problems.add(
            "job.protection",
            f"fault {fault.fault.id!r} leaves no whole replica, and {restarting} behind {mechanism} is not yet "
            "supported by this version: whether it starts ranks again that the SDK has let exit depends on "
            "MindCluster",
            text=restarting,
            hint=f"take {restarting} out of job.protection",
        )


def check_promise(scenario: Scenario, faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note a memory error with HCCE on and UCE off: MindSpore reports it as such, and its outcome is not documented."""
    vendor = traits.vendor or MINDSPORE
    on = switched_on(scenario.job.protection)
    for fault in faults:
        if fault.effect.of_memory and fault.repaired_by is None and "HCCE" in on:
            _note_promise(scenario, fault, vendor, problems)


def _note_promise(scenario: Scenario, fault: Scheduled, vendor: Vendor, problems: Problems) -> None:
    problems.add(
        "job.protection",
        f"{ranks(fault.fault.ranks)} has a memory error ({problems.where(fault.path)}), and HCCE is on without UCE: "
        f"{vendor.document} promises nothing for a memory error without UCE, so nothing can be judged",
        text=", ".join(scenario.job.protection),
        hint="add UCE to job.protection, or take HCCE out of it",
    )


def _ends(context: Context, incident: Incident, failed: Answer) -> Answer:
    """Return the end of the job after a failed repair, unless ranks are started anew.

    Nothing else may follow a failed repair (MindIO TFT 7.3, observed): the ranks exit. Nothing is saved, since they may
    have changed their state.
    """
    why = f"{failed.why}. The ranks may have changed their state by then, so the SDK saves nothing, and the job exits"
    if context.scenario.expect.checkpoint != "none":
        context.problems.add(f"{failed.cause}.trigger", why, text=failed.cause, hint=PROVE_NONE)
    loss = context.loss(incident)
    return replace(failed, why=why, ends=True, loss=loss, dead=incident.hit)


def _spoils(spoilt: Sequence[Scheduled]) -> str:
    return "; ".join(
        f"fault {fault.fault.id} ({fault.fault.kind}) strikes {ranks(fault.fault.ranks)} at the entry of handler "
        f"{fault.handler}"
        for fault in spoilt
    )


def _no_replica_left(context: Context, fault: Scheduled) -> Violation | None:
    """Return a replica group whose ranks all have a memory error: for the SDK it has no sound copy of the state.

    The SDK learns only when the device is cleaned that the memory held nothing needed, and it asks for a whole replica
    of every group before (seen with MindIO TFT 26.1: ``dp:[1, 3] has no complete data``).
    """
    if not fault.effect.of_memory:
        return None
    lost = survive(context.groups, fault.fault.ranks).lost
    if not lost:
        return None
    left, document = "so no sound copy of the state is left", context.vendor.document
    if fault.effect.spares_memory:
        left = "and the SDK finds no sound copy of the state, since it hears later that nothing was lost"
    return Violation(
        f"{fault.path}.target",
        f"every rank of replica group {group(context.groups[lost[0]])} has a memory error at the same moment, {left}: "
        f"UCE cannot repair it, and the job exits without a checkpoint ({document}, replica relationships)",
        text=ranks(fault.fault.ranks),
        hint="leave a rank of every replica group alone",
    )


def _why(context: Context, fault: Scheduled) -> str:
    who = f"{ranks(fault.fault.ranks)} {'has' if len(fault.fault.ranks) == 1 else 'have'} a {fault.effect}"
    if fault.effect.spares_memory:
        how = "and copies nothing, since the memory held nothing that is needed: no process ends and nothing is saved"
    elif fault.repaired_by == "UCE":
        how = "with the state of a replica: no process ends and nothing is saved"
    else:
        how = "and copies nothing, since no rank has lost its state: no process ends and nothing is saved"
    by = ""
    if fault.repaired_by not in context.scenario.job.protection:
        framework = context.vendor.framework
        by = f". HCCE is not on, but with UCE on {framework}'s wrapper around the training handles this error too"
    return f"{who}, and {fault.repaired_by} repairs that online ({context.vendor.document}) {how}{by}"


def _how(fault: Scheduled) -> str:
    """Return why the ranks go on after this step."""
    at, who = fault.moment.earliest, ranks(fault.fault.ranks)
    step = at.last_complete
    copied = f", {who} with the state of a replica" if fault.effect.loses_memory else ""
    if at.contributed:
        return (
            f"the {fault.effect} comes at {at}, behind the all-reduce: the others finish step {at.step} and block in "
            f"step {at.step + 1}, so all go on after step {step}{copied}"
        )
    return (
        f"the {fault.effect} comes at {at}, before the gradients are in: no rank can finish step {at.step}, so all go "
        f"on after step {step}{copied}, and step {at.step} is replayed"
    )
