"""Damage to the newest checkpoint before a restart within the launch: the launcher leaves no time for it afterwards.

It is planned where the rank is held at a barrier for it, the barrier certainly comes before the loss, and no save comes
between. Only the scenario can say what the script makes of a damaged file (``expect.resume``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Context
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import ExpectResume

KEY = "expect.resume"

_SAVED = PHASE_ORDER.index("checkpoint.end")


@dataclass(frozen=True)
class DamageBefore:
    """The damage that a restart meets: the faults, and the step of the damaged file by rank."""

    faults: tuple[Scheduled, ...] = ()
    by_rank: Mapping[int, int] = field(default_factory=dict)


def damage_before(context: Context, incident: Incident, at: Point, newest: int) -> DamageBefore:
    """Return the damage that the restart after an incident meets; none where it cannot be planned, which is noted.

    Args:
        context: the known facts of the scenario.
        incident: the incident that the restart answers.
        at: the point at which the training stops.
        newest: the step of the newest finished checkpoint at the restart, 0 without one.
    """
    before = _answered_before(context)
    faults = tuple(fault for fault in context.faults if _damages(fault) and before < fault.moment.earliest < at)
    if not faults or any(_refused(context, incident, fault, at, newest) for fault in faults):
        return DamageBefore()
    return DamageBefore(faults, {rank: newest for fault in faults for rank in fault.fault.ranks})


def stated_step(context: Context, damage: DamageBefore, newest: int) -> int:
    """Return the step after which the script goes on, as the scenario says; note where it says none that is saved."""
    fault, interval = damage.faults[0], context.scenario.job.checkpoint_interval or 1
    written = context.scenario.expect.resume
    if not isinstance(written, ExpectResume):
        context.problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} damages the checkpoint of step {newest}, and the plan does not know whether the "
            "script notices that and goes on from an earlier one",
            text=fault.fault.kind,
            hint=f"write {KEY}: {{step: N}}, the step behind the checkpoint from which the script has to go on; no "
            "script may go on from the damaged one",
        )
        return newest
    step = written.step - 1
    if step <= 0 or step % interval or step >= newest:
        steps = ", ".join(str(saved + 1) for saved in range(interval, newest, interval))
        context.problems.add(
            f"{KEY}.step",
            f"{KEY}.step says {written.step}, but checkpoints are saved every {interval} steps, and that of step "
            f"{newest} is damaged by fault {fault.fault.id!r} ({context.problems.where(fault.path)})",
            text=written.step,
            hint=f"write one of: {steps}" if steps else "let the fault come behind the second save",
        )
        return newest
    if any(recovery.damaged for recovery in context.before):
        context.problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} is the second that a restart meets, and {KEY} states the step of one restart",
            text=fault.fault.kind,
            hint="damage the checkpoint before one restart only",
        )
    return step


def _damages(fault: Scheduled) -> bool:
    return fault.effect.changes_file and fault.moment.exact and fault.handler is None


def _answered_before(context: Context) -> Point:
    """Return the last point that ranks reach before the restarts so far; no point comes before the first."""
    answered = {name for recovery in context.before for name in recovery.faults}
    points = [fault.moment.earliest.block for fault in context.faults if fault.fault.id in answered]
    return max(points, default=Point(0, 0))


def _refused(context: Context, incident: Incident, fault: Scheduled, at: Point, newest: int) -> bool:
    """Return whether the damage cannot be planned before this restart; note why."""
    name, ending = fault.fault.id, incident.first
    point, interval = fault.moment.earliest, context.scenario.job.checkpoint_interval
    lost = f"fault {ending.fault.id!r} ({context.problems.where(ending.path)})"
    last = _newest_at(point, interval)
    if fault.effect.damages == "name":
        path, text = f"{fault.path}.kind", fault.fault.kind
        message = f"fault {name!r} gives the newest checkpoint another name, and a restart within the launch that "
        message += "meets such a file is not yet planned by this version"
        hint = "use a fault that damages the content, or no mechanism in job.protection"
    elif context.scenario.job.storage.asynchronous_saving:
        path, text = "job.storage.asynchronous_saving", "true"
        message = f"checkpoints are written in the background, so which one is finished when fault {name!r} comes is "
        message += "not known"
        hint = "save in the foreground"
    elif not _certainly_before(fault, incident.faults):
        path, text = f"{fault.path}.trigger", str(point)
        message = f"fault {name!r} may come after {lost}: no exchange of gradients lies between, and they hit "
        message += "different ranks"
        hint = "let it come a step earlier, or hit a rank that is lost"
    elif interval is None or not last:
        path, text = f"{fault.path}.trigger", str(point)
        message = f"fault {name!r} finds no checkpoint: none has been saved by {point}"
        hint = "let it come later, or save more often"
    elif last != newest:
        path, text = f"{fault.path}.trigger", str(point)
        message = f"fault {name!r} damages the checkpoint of step {last}, and that of step {newest} is saved before "
        message += f"{lost} restarts the job: no restart meets the damage"
        hint = f"let it come behind the save of step {newest}"
    else:
        return False
    context.problems.add(path, message, text=text, hint=hint)
    return True


def _newest_at(point: Point, interval: int | None) -> int:
    """Return the step of the newest checkpoint that a rank at this point has finished, 0 without one."""
    done = point.step if point.phase >= _SAVED else point.step - 1
    return 0 if interval is None else done - done % interval


def _certainly_before(fault: Scheduled, losses: Sequence[Scheduled]) -> bool:
    """Return whether every loss can only come after the fault has landed and its ranks have gone on.

    A lost rank is one of those held for the fault before, or takes part in an exchange that needs them.
    """
    point = fault.moment.earliest
    exchange = point.step + point.contributed
    for loss in losses:
        later = loss.moment.earliest
        together = not set(fault.fault.ranks).isdisjoint(loss.fault.ranks) and point < later
        if not together and not (later.step > exchange or (later.step == exchange and later.contributed)):
            return False
    return True
