"""RSC: pod-level rescheduling. The cluster's agent kills all ranks and starts them again, without the launcher exiting.

The job goes on from its last periodic checkpoint, as its own script finds it; steps since then are trained again.
"""

from __future__ import annotations

from chaos.plan.answer import Answer, Context, note
from chaos.plan.constraints import no_agent, nothing_left
from chaos.plan.describe import are_lost, count
from chaos.plan.mechanism import DOCUMENT
from chaos.plan.model import Recovery
from chaos.plan.moments import PHASE_ORDER, Point
from chaos.plan.strike import Strike

_STEP_END = PHASE_ORDER.index("step.end")
_SAVED = PHASE_ORDER.index("checkpoint.end")


def answer(context: Context, strike: Strike) -> Answer | None:
    """A restart of all ranks; None where RSC is off. Past the limit of restarts, the agent ends the job."""
    scenario, problems = context.scenario, context.problems
    if "RSC" not in context.on:
        return None
    cause, dead = strike.first.path, strike.hit
    loss, lost = strike.loss(scenario.job.steps), are_lost(dead)
    alone = no_agent(scenario)
    if alone is not None:
        note(alone, problems)
    others = [mechanism for mechanism in context.on if mechanism != "RSC"]
    if others:
        problems.add(
            "job.protection",
            f"RSC behind {', '.join(others)} is not yet supported by this version: which of them still acts when the "
            "ranks have been started again is not planned",
            text="RSC",
            hint="switch RSC on alone",
        )
    if any(fault.effect == "suspension" for fault in strike.faults):
        problems.add(
            f"{cause}.kind",
            "a suspended process still runs for the cluster's agent, so RSC alone never notices it and the job hangs",
            hint="kill the rank, or switch on a mechanism that watches heartbeats",
        )
    apart = [fault for fault in strike.faults if fault.moment != strike.first.moment]
    if apart:
        problems.add(
            f"{apart[0].path}.trigger",
            f"fault {apart[0].fault.id!r} may never be reached: after fault {strike.first.fault.id!r} "
            f"({problems.where(cause)}) the agent kills all ranks at once",
            hint="hit all ranks with one fault, or use a later step",
        )
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
    return _restart(context, strike, loss.at, lost)


def _restart(context: Context, strike: Strike, at: Point, lost: str) -> Answer:
    scenario, cause = context.scenario, strike.first.path
    interval = scenario.job.checkpoint_interval
    begin = max((one.step for one in context.before if one.step is not None), default=0)
    done = at.step if at.phase >= _SAVED else at.step - 1
    step = begin if interval is None else max(begin, done - done % interval)
    if interval is not None and at.contributed and at.phase < _SAVED and at.step % interval == 0:
        context.problems.add(
            f"{cause}.trigger",
            f"{lost} at {at}, and the others are about to save the periodic checkpoint of step {at.step} when the "
            "agent kills them: whether it is finished is a matter of time",
            text=str(at),
            hint=f"use a step that is no multiple of job.checkpoint_interval ({interval}), or phase checkpoint.end",
        )
    # Behind the all-reduce and before the end of the step nobody may have ended it when the agent kills the others.
    again = None if at.contributed and at.phase < _STEP_END else at.last_complete - step
    why = (
        f"{lost}, and with RSC the cluster's agent kills all ranks and starts them again ({DOCUMENT}); the launcher "
        "stays"
    )
    recovery = Recovery(
        "RSC",
        strike.ids,
        step,
        restarted=tuple(range(scenario.cluster.ranks)),
        reads_checkpoint=step > 0,
        trained_again=again,
    )
    return Answer(recovery, why, cause, how=_how(step, again, interval))


def _how(step: int, again: int | None, interval: int | None) -> str:
    """Why training goes on after this step, and what that costs."""
    if step:
        origin = f"the last periodic checkpoint holds step {step}, so training goes on at step {step + 1}"
    elif interval is None:
        origin = "there is no periodic checkpoint, since job.checkpoint_interval is not set, so training begins anew"
    else:
        origin = f"no periodic checkpoint has been saved yet (every {interval} steps), so training begins anew"
    cost = (
        "the step in which the rank was lost may be trained twice" if again is None else f"{count(again, 'step')} lost"
    )
    return f"{origin}; {cost}"
