"""TTP: the end-of-life checkpoint, the last safeguard. After it there is only the end of the job."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.describe import are_lost, ranks
from chaos.plan.job_effect import UNKNOWN_ERROR, UPDATE_MEMORY_ERROR
from chaos.plan.parts.response import Recovery
from chaos.plan.recovery.handlers import spoilers
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import PROVE_NONE, Answer, Context, note
from chaos.plan.recovery.spoilt_saves import spoils_save
from chaos.plan.recovery.steps import Loss
from chaos.plan.recovery.vendor import Vendor
from chaos.plan.rules.constraints import CONTROLLER_RANK, loss_violations, nothing_left
from chaos.plan.schedule import Scheduled
from chaos.plan.topology.survive import survive


def answer(context: Context, incident: Incident) -> Answer:
    """Return the end-of-life checkpoint, or why there is none. The launch ends either way."""
    scenario = context.scenario
    loss = context.loss(incident)
    lethal = [*incident.faults, *(fault for fault in incident.spoilt if fault.lethal or fault.effect.loses_memory)]
    dead = _dead(incident, lethal)
    cause = incident.first.path
    lost = are_lost(dead)
    late = nothing_left(loss, scenario.job.steps, cause)
    if late is not None:
        note(late, context.problems)
    if "TTP" not in context.on:
        has = f"job.protection has only {', '.join(context.on)}" if context.on else "job.protection is empty"
        why = f"{lost} and {has}, so no mechanism can act and the job just ends{_counted(incident, context.vendor)}"
        return Answer(None, why, cause, ends=True, loss=loss, dead=dead)
    if scenario.job.agent and "dump" not in scenario.job.strategies:
        why = (
            f"{lost}, and dump is not among job.strategies ({', '.join(scenario.job.strategies)}), so the cluster's "
            "agent chooses exit and nothing is saved"
        )
        return Answer(None, why, cause, ends=True, loss=loss, dead=dead)
    silent = {rank for fault in lethal if fault.effect.silences for rank in fault.fault.ranks}
    violations = loss_violations(
        scenario,
        context.groups,
        dead,
        silent,
        loss,
        cause=cause,
        controller_cause=_controller_cause(lethal, cause),
        vendor=context.vendor,
    )
    if violations and scenario.expect.checkpoint != "none":
        for violation in violations:
            note(violation, context.problems, PROVE_NONE)
    if violations:
        why = "; ".join(violation.message for violation in violations)
        return Answer(None, f"{why}{_counted(incident, context.vendor)}", cause, ends=True, loss=loss, dead=dead)
    entitled = survive(context.groups, dead).entitled
    full = spoils_save(context.faults, incident.first, entitled, context.problems)
    savers = tuple(sorted(members[0] for members in entitled))
    entered = {"save_ckpt": savers, "rename": () if full else savers[-1:]}  # a failing save is not renamed
    spoilt = (*full, *spoilers(context, incident, "TTP", entered))
    if spoilt:
        return _spoilt(context, incident, spoilt, loss, dead)
    document = context.vendor.document
    why = f"{lost}, and TTP acts when a rank is lost ({document}): every replica group saves the last complete step"
    recovery = Recovery("TTP", incident.ids, loss.step)
    how = _stop(incident, loss)
    return Answer(
        recovery, f"{why}{_counted(incident, context.vendor)}", cause, how=how, ends=True, loss=loss, dead=dead
    )


def _spoilt(
    context: Context, incident: Incident, spoilt: Sequence[Scheduled], loss: Loss, dead: tuple[int, ...]
) -> Answer:
    """Return a broken-off save: its files keep their temporary name."""
    how = "; ".join(_breaks_off(fault) for fault in spoilt)
    why = (
        f"{are_lost(dead)} and TTP begins to save, but the save is interrupted: {how}. The files that exist keep "
        "their temporary name, and no end-of-life checkpoint is finished"
    )
    if context.scenario.expect.checkpoint != "none":
        context.problems.add(f"{spoilt[0].path}.trigger", why, text=spoilt[0].handler or "", hint=PROVE_NONE)
    recovery = Recovery("TTP", incident.ids, loss.step, succeeds=False)
    left = incident.after("TTP", spoilt)
    return Answer(recovery, why, spoilt[0].path, ends=True, left=left, loss=loss, dead=dead)


def _breaks_off(fault: Scheduled) -> str:
    """Return the effect of a fault on the save, in words."""
    if (how := fault.effect.spoils_saves) is not None:
        return f"fault {fault.fault.id} has {how.done}"
    phase = fault.fault.trigger.get("phase")
    where = f"at {phase} in handler {fault.handler}" if phase else f"at handler {fault.handler}"
    return f"fault {fault.fault.id} strikes {ranks(fault.fault.ranks)} {where}"


def _dead(incident: Incident, lethal: Sequence[Scheduled]) -> tuple[int, ...]:
    """Return the ranks whose state is lost, including those with unrepaired errors and those with new processes."""
    return tuple(sorted({*incident.hit, *incident.replaced, *(rank for fault in lethal for rank in fault.fault.ranks)}))


def _counted(incident: Incident, vendor: Vendor) -> str:
    """Return why ranks with an error count as lost, to be put behind a reason."""
    errors = sorted({fault.effect.raises for fault in incident.faults if fault.effect.raises is not None})
    if not errors or incident.failed:
        return ""
    if errors == [UPDATE_MEMORY_ERROR]:
        return (
            ". A memory error that falls into the optimizer's update cannot be repaired online, since what was written "
            f"meanwhile may be wrong: {vendor.framework} asks the SDK with the time of error 507054, and the rank "
            "counts as lost"
        )
    if errors == [UNKNOWN_ERROR]:
        return (
            f". {vendor.framework} repairs errors whose text it knows, and reports any other to the SDK as unknown: "
            "the rank counts as lost"
        )
    return f". No mechanism that repairs a {' or a '.join(errors)} online is on, so a rank that reports one is lost"


def _controller_cause(lethal: Sequence[Scheduled], otherwise: str) -> str:
    """Return the path of the fault that takes the rank which may host the controller."""
    return next(
        (fault.path for fault in lethal if fault.effect.silences and CONTROLLER_RANK in fault.fault.ranks), otherwise
    )


def _stop(incident: Incident, loss: Loss) -> str:
    """Return why this is the last complete step."""
    if loss.at is None:
        return (
            "the trigger leaves the step open: the checkpoint holds the last step that the saving rank trained, "
            f"one of {max(1, loss.lowest)} to {loss.highest}"
        )
    lost, point = are_lost(incident.first.fault.ranks), loss.at
    if loss.accumulating:
        return (
            f"{lost} at {point}, within an accumulation of gradients (job.steps_per_update): the others train on until "
            "they need the lost rank's gradients, in the next step or for the next update, so the checkpoint holds the "
            f"last step that the saving rank trained, one of {loss.lowest} to {loss.highest}"
        )
    if point.contributed:
        return (
            f"{lost} at {point}, behind the all-reduce: the others finish step {point.step} and block in "
            f"step {point.step + 1}, so step {point.step} is saved"
        )
    return (
        f"{lost} at {point}, before its gradients are in: the others block in the all-reduce of step "
        f"{point.step}, so step {point.step - 1} is saved"
    )
