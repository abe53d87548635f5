"""RSC: pod-level rescheduling. The cluster's agent kills all ranks and starts them again, without the launcher exiting.

The job goes on from its last periodic checkpoint, as its own script finds it; steps since then are trained again.
"""

from __future__ import annotations

from chaos.plan.describe import are_lost, count, ranks
from chaos.plan.parts.response import Recovery
from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.mechanism import DOCUMENT
from chaos.plan.recovery.response import Answer, Context, note
from chaos.plan.recovery.steps import Loss
from chaos.plan.rules.constraints import Violation, nothing_left
from chaos.scenario.models.scenario import Scenario

_FORWARD = PHASE_ORDER.index("forward")
_STEP_END = PHASE_ORDER.index("step.end")
_SAVED = PHASE_ORDER.index("checkpoint.end")


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return a restart of all ranks; None where RSC is off. Past the limit of restarts, the agent ends the job."""
    scenario, problems = context.scenario, context.problems
    if "RSC" not in context.on:
        return None
    cause, dead = incident.first.path, incident.hit
    loss, lost = context.loss(incident), are_lost(dead)
    alone = _no_agent(scenario)
    if alone is not None:
        note(alone, problems)
    others = [mechanism for mechanism in context.on if mechanism != "RSC"]
    if others:
        problems.add(
            "job.protection",
            f"RSC behind {', '.join(others)} is not yet supported by this version: no plan exists for which of them "
            "still acts after the restart",
            text="RSC",
            hint="switch RSC on alone",
        )
    if any(fault.effect.suspends for fault in incident.faults):
        problems.add(
            f"{cause}.kind",
            "a suspended process still runs for the cluster's agent, so RSC alone never notices it and the job hangs",
            hint="kill the rank, or switch on a mechanism that watches heartbeats",
        )
    apart = [fault for fault in incident.faults if fault.moment != incident.first.moment]
    if apart:
        problems.add(
            f"{apart[0].path}.trigger",
            f"fault {apart[0].fault.id!r} may never be reached: after fault {incident.first.fault.id!r} "
            f"({problems.where(cause)}) the agent kills all ranks at once",
            hint="hit all ranks with one fault, or use a later step",
        )
    _check_early(context, incident, loss)
    restarts = sum(recovery.mechanism == "RSC" for recovery in context.before)
    if restarts >= scenario.job.restart_limit:
        why = (
            f"{lost}, and the cluster's agent has started all ranks again {count(restarts, 'time')}, as often as "
            "job.restart_limit allows: it ends the job"
        )
        return Answer(None, why, cause, ends=True, loss=loss, dead=dead)
    late = nothing_left(loss, scenario.job.steps, cause)
    if late is not None:
        note(late, problems)
    if loss.at is None:
        problems.add(
            f"{cause}.trigger",
            "the trigger leaves the step open, so it is not known which periodic checkpoint is the last one",
            hint="give the step and the phase",
        )
        return Answer(None, "", cause, ends=True, loss=loss, dead=dead)
    return _restart(context, incident, loss, loss.at, lost)


def _no_agent(scenario: Scenario) -> Violation | None:
    """Return the lack of a cluster's agent: RSC only hands the processes over, and the agent must take them."""
    if scenario.job.agent:
        return None
    return Violation(
        "job.protection",
        f"RSC needs a cluster agent, which starts the ranks again ({DOCUMENT}, environment variables: it only hands "
        "the processes over to a third-party component), and job.agent is false",
        text="RSC",
        hint="set job.agent: true",
    )


def _check_early(context: Context, incident: Incident, loss: Loss) -> None:
    """Note later faults that a rank may reach before it is killed, or only in its new run.

    Ranks of other replica groups are meant.
    """
    if loss.at is None:
        return
    for fault in context.faults:
        at = fault.moment.earliest
        waiting = fault in incident.faults or fault.handler is not None or not fault.moment.exact
        if waiting or not loss.at < at < Point(loss.at.step + 1, loss.at.phase):
            continue
        early = sorted(set(loss.ahead).intersection(fault.fault.ranks))
        if early:
            context.problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} may hit {ranks(early)} before the agent kills all ranks because of fault "
                f"{incident.first.fault.id!r} ({context.problems.where(incident.first.path)}) or after it has started "
                "them again: they are of another replica group, which may finish the step without the lost ranks",
                text=str(at),
                hint=f"use a point behind step {loss.at.step + 1}",
            )


def _restart(context: Context, incident: Incident, loss: Loss, at: Point, lost: str) -> Answer:
    scenario, cause = context.scenario, incident.first.path
    interval = scenario.job.checkpoint_interval
    begin = max((candidate.step for candidate in context.before if candidate.step is not None), default=0)
    done = at.step if at.phase >= _SAVED else at.step - 1
    step = begin if interval is None else max(begin, done - done % interval)
    if interval is not None:
        _check_saving(context, incident, loss, at, interval, begin)
    # Behind the all-reduce and before the end of the step, no rank may have ended it when the agent kills the others.
    ended = at.step if at.phase >= _STEP_END else at.step - 1
    everyone = range(scenario.cluster.ranks)
    one_more = loss.ahead
    if at.last_complete > ended or loss.accumulating:
        one_more = tuple(rank for rank in everyone if rank not in incident.hit)
    more = max(1, loss.highest - ended)
    why = (
        f"{lost}, and with RSC the cluster's agent kills all ranks and starts them again ({DOCUMENT}); the launcher "
        "stays"
    )
    recovery = Recovery(
        "RSC",
        incident.ids,
        step,
        restarted=tuple(everyone),
        reads_checkpoint=step > 0,
        trained_again=ended - step,
        one_more=one_more,
        more=more,
    )
    cost = _cost(at, ended - step, one_more, more, loss)
    return Answer(recovery, why, cause, how=f"{_origin(step, interval)}; {cost}")


def _check_saving(context: Context, incident: Incident, loss: Loss, at: Point, interval: int, begin: int) -> None:
    """Note a restart that may come while ranks save a periodic checkpoint that is not certain to be finished."""
    others = [members for members in context.groups if not set(incident.hit).intersection(members)]
    due = at.step % interval == 0
    saving = None
    if due and at.contributed and at.phase < _SAVED:
        saving, who = at.step, "the others"
    elif due and (loss.ahead or (at.phase >= _SAVED and others)):
        saving, who = at.step, "the ranks of other replica groups"
    elif at.phase <= _FORWARD and at.step - 1 > begin and (at.step - 1) % interval == 0 and others:
        saving, who = at.step - 1, "the ranks of other replica groups"
    elif loss.accumulating and (later := loss.highest - loss.highest % interval) > max(begin, loss.lowest):
        saving, who = later, "the others, within an accumulation of gradients (job.steps_per_update),"
    if saving is None:
        _check_background(context, incident, at, interval)
        return
    context.problems.add(
        f"{incident.first.path}.trigger",
        f"{are_lost(incident.hit)} at {at}, and {who} may still have to save the periodic checkpoint of step {saving} "
        "when the agent kills them: whether the save finishes depends on timing",
        text=str(at),
        hint=f"use a step that is neither a multiple of job.checkpoint_interval ({interval}) nor the one after it"
        + ("" if others else ", or phase checkpoint.end"),
    )


def _check_background(context: Context, incident: Incident, at: Point, interval: int) -> None:
    """Note a restart so near to a save in the background that the save is hardly finished.

    A check asks the run about a later restart.
    """
    done = at.step if at.phase >= _SAVED else at.step - 1
    saved = done - done % interval
    if not context.scenario.job.storage.asynchronous_saving or not saved or at.step > saved + 1:
        return
    context.problems.add(
        f"{incident.first.path}.trigger",
        f"{are_lost(incident.hit)} at {at}, when the periodic checkpoint of step {saved} is just being written in the "
        "background (job.storage.asynchronous_saving): whether the save finishes depends on timing",
        text=str(at),
        hint="use a later step, so that the checkpoint has been written; the run must prove that it was",
    )


def _origin(step: int, interval: int | None) -> str:
    """Return why training goes on after this step."""
    if step:
        return f"the last periodic checkpoint holds step {step}, so training goes on at step {step + 1}"
    if interval is None:
        return "there is no periodic checkpoint, since job.checkpoint_interval is not set, so training begins anew"
    return f"no periodic checkpoint has been saved yet (every {interval} steps), so training begins anew"


def _cost(at: Point, least: int, one_more: tuple[int, ...], more: int, loss: Loss) -> str:
    """Return the number of lost complete steps; where it is open, why."""
    if not one_more:
        return f"{count(least, 'step')} lost"
    who = f"{ranks(one_more)}, of other replica groups," if loss.ahead else "the others"
    cost = f"{least} {'or' if more == 1 else 'to'} {count(least + more, 'step')} lost"
    return f"{cost}: {who} may end step {max(at.step, loss.highest)} before the agent kills them, or not"
