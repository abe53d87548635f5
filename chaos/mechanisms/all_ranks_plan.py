"""The plan of a restart of all ranks: where training goes on, its cost, and faults after which neither is known.

The job goes on from its last periodic checkpoint, as its own script finds it; steps since then are trained again.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.mechanisms.all_ranks_saving import check_saving
from chaos.plan.describe import are_lost, count, ranks
from chaos.plan.parts.response import Recovery
from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.recovery.damage_before import KEY, DamageBefore, damage_before, stated_step
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.mechanism import MEETING_DAMAGE
from chaos.plan.recovery.response import Answer, Context, note
from chaos.plan.recovery.steps import Loss
from chaos.plan.rules.constraints import nothing_left

_STEP_END = PHASE_ORDER.index("step.end")
_SAVED = PHASE_ORDER.index("checkpoint.end")


@dataclass(frozen=True, kw_only=True)
class Restarter:
    """The mechanism that restarts all ranks, with the words for it in a plan.

    Args:
        name: the mechanism.
        actor: who ends the ranks and starts them again.
        short: the same where it was named before.
        ends: how it ends them: "kills", "stops".
        source: the document that says so.
        saver_unknown: whether a rank may begin the step after a save while another rank still saves.
    """

    name: str
    actor: str
    short: str
    ends: str
    source: str
    saver_unknown: bool = False


def refuse_others(context: Context, restarter: Restarter) -> None:
    """Note further mechanisms that are on: which of them acts after the restart is not known."""
    others = [mechanism for mechanism in context.on if mechanism != restarter.name]
    if others:
        context.problems.add(
            "job.protection",
            f"{restarter.name} behind {', '.join(others)} is not yet supported by this version: no plan exists for "
            "which of them still acts after the restart",
            text=restarter.name,
            hint=f"switch {restarter.name} on alone",
        )


def restarted(context: Context, incident: Incident, restarter: Restarter) -> Answer:
    """Return the restart of all ranks. Past the limit of restarts (``job.restart_limit``) the job ends.

    Notes faults that may not be reached, and moments at which the last checkpoint is not known.
    """
    scenario, problems = context.scenario, context.problems
    cause, dead = incident.first.path, incident.hit
    loss, lost = context.loss(incident), are_lost(dead)
    _check_apart(context, incident, restarter)
    _check_early(context, incident, loss, restarter)
    restarts = sum(recovery.mechanism == restarter.name for recovery in context.before)
    if restarts >= scenario.job.restart_limit:
        why = (
            f"{lost}, and {restarter.actor} has started all ranks again {count(restarts, 'time')}, as often as "
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
    return _restart(context, incident, loss, loss.at, restarter)


def _check_apart(context: Context, incident: Incident, restarter: Restarter) -> None:
    apart = [fault for fault in incident.faults if fault.moment != incident.first.moment]
    if apart:
        context.problems.add(
            f"{apart[0].path}.trigger",
            f"fault {apart[0].fault.id!r} may never be reached: after fault {incident.first.fault.id!r} "
            f"({context.problems.where(incident.first.path)}) {restarter.short} {restarter.ends} all ranks at once",
            hint="hit all ranks with one fault, or use a later step",
        )


def _check_early(context: Context, incident: Incident, loss: Loss, restarter: Restarter) -> None:
    """Note later faults that a rank may reach before it is ended, or only in its new run.

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
                f"fault {fault.fault.id!r} may hit {ranks(early)} before {restarter.short} {restarter.ends} all ranks "
                f"because of fault {incident.first.fault.id!r} ({context.problems.where(incident.first.path)}) or "
                "after it has started them again: they are of another replica group, which may finish the step without "
                "the lost ranks",
                text=str(at),
                hint=f"use a point behind step {loss.at.step + 1}",
            )


def _restart(context: Context, incident: Incident, loss: Loss, at: Point, restarter: Restarter) -> Answer:
    scenario = context.scenario
    interval = scenario.job.checkpoint_interval
    begin = max((candidate.step for candidate in context.before if candidate.step is not None), default=0)
    done = at.step if at.phase >= _SAVED else at.step - 1
    step = begin if interval is None else max(begin, done - done % interval)
    if interval is not None:
        ends_them = f"{restarter.short} {restarter.ends} them"
        check_saving(context, incident, loss, at, begin, ends_them, saver_unknown=restarter.saver_unknown)
    newest = step
    damage = damage_before(context, incident, at, newest) if restarter.name in MEETING_DAMAGE else DamageBefore()
    if damage.faults:
        step = stated_step(context, damage, newest)
    # Behind the all-reduce and before the end of the step, no rank may have ended it when the others are ended.
    ended = at.step if at.phase >= _STEP_END else at.step - 1
    everyone = range(scenario.cluster.ranks)
    one_more = loss.ahead
    if at.last_complete > ended or loss.accumulating:
        one_more = tuple(rank for rank in everyone if rank not in incident.hit)
    more = max(1, loss.highest - ended)
    why = (
        f"{are_lost(incident.hit)}, and with {restarter.name} {restarter.actor} {restarter.ends} all ranks and starts "
        f"them again ({restarter.source}); the launcher stays"
    )
    recovery = Recovery(
        restarter.name,
        incident.ids,
        step,
        restarted=tuple(everyone),
        reads_checkpoint=step > 0,
        trained_again=ended - step,
        one_more=one_more,
        more=more,
        damaged=dict(damage.by_rank),
    )
    cost = _cost(at, ended - step, one_more, more, loss, restarter)
    return Answer(recovery, why, incident.first.path, how=f"{_origin(step, newest, damage, interval)}; {cost}")


def _origin(step: int, newest: int, damage: DamageBefore, interval: int | None) -> str:
    """Return why training goes on after this step."""
    if damage.faults:
        hit = ", ".join(repr(fault.fault.id) for fault in damage.faults)
        return (
            f"the last periodic checkpoint, of step {newest}, is damaged by fault {hit} before the restart, and the "
            f"scenario says that the script goes on from that of step {step} ({KEY})"
        )
    if step:
        return f"the last periodic checkpoint holds step {step}, so training goes on at step {step + 1}"
    if interval is None:
        return "there is no periodic checkpoint, since job.checkpoint_interval is not set, so training begins anew"
    return f"no periodic checkpoint has been saved yet (every {interval} steps), so training begins anew"


def _cost(at: Point, least: int, one_more: tuple[int, ...], more: int, loss: Loss, restarter: Restarter) -> str:
    """Return the number of lost complete steps; where it is open, why."""
    if not one_more:
        return f"{count(least, 'step')} lost"
    who = f"{ranks(one_more)}, of other replica groups," if loss.ahead else "the others"
    cost = f"{least} {'or' if more == 1 else 'to'} {count(least + more, 'step')} lost"
    last = max(at.step, loss.highest)
    return f"{cost}: {who} may end step {last} before {restarter.short} {restarter.ends} them, or not"
