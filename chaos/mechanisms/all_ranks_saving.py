"""Restarts of all ranks that may come while a periodic checkpoint is saved: whether the save finishes is not known."""

from __future__ import annotations

from chaos.plan.describe import are_lost
from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Context
from chaos.plan.recovery.steps import Loss

_FORWARD = PHASE_ORDER.index("forward")
_SAVE_BEGUN = PHASE_ORDER.index("checkpoint.begin")
_SAVED = PHASE_ORDER.index("checkpoint.end")


def check_saving(
    context: Context,
    incident: Incident,
    loss: Loss,
    at: Point,
    begin: int,
    ends_them: str,
    *,
    saver_unknown: bool,
) -> None:
    """Note a restart that may come while ranks save a periodic checkpoint that is not certain to be finished.

    Args:
        context: the known facts of the scenario, with an interval of checkpoints.
        incident: the incident that the restart answers.
        loss: how the training stops, at the point ``at``.
        at: the point.
        begin: the step after which the processes have begun.
        ends_them: who ends the ranks, in words.
        saver_unknown: a rank that begins a step does not show that other ranks have finished their saves.
    """
    interval = context.scenario.job.checkpoint_interval
    assert interval is not None
    others = [members for members in context.groups if not set(incident.hit).intersection(members)]
    of_others = bool(others) or saver_unknown
    due = at.step % interval == 0
    saving = None
    if saver_unknown and not others and _hits_only_saver(context, at):
        return
    if due and at.contributed and at.phase < _SAVED:
        saving, who = at.step, "the others"
    elif due and (loss.ahead or (at.phase >= _SAVED and others)):
        saving, who = at.step, "the ranks of other replica groups"
    elif _early(at, saver_unknown) and at.step - 1 > begin and (at.step - 1) % interval == 0 and of_others:
        saving, who = at.step - 1, "the ranks of other replica groups" if others else "another rank"
    elif loss.accumulating and (later := loss.highest - loss.highest % interval) > max(begin, loss.lowest):
        saving, who = later, "the others, within an accumulation of gradients (job.steps_per_update),"
    if saving is None:
        _check_background(context, incident, at, interval)
        return
    context.problems.add(
        f"{incident.first.path}.trigger",
        f"{are_lost(incident.hit)} at {at}, and {who} may still have to save the periodic checkpoint of step {saving} "
        f"when {ends_them}: whether the save finishes depends on timing",
        text=str(at),
        hint=f"use a step that is neither a multiple of job.checkpoint_interval ({interval}) nor the one after it"
        + ("" if of_others else ", or phase checkpoint.end"),
    )


def _early(at: Point, saver_unknown: bool) -> bool:
    """Return whether a rank may come to a point while other ranks are still behind the step before.

    Where it is not known who saves, ranks meet in the exchange of the gradients at the latest, and not before.
    """
    return not at.contributed if saver_unknown else at.phase <= _FORWARD


def _hits_only_saver(context: Context, at: Point) -> bool:
    """Return whether a rank is lost within its save, and is the one that saves for its group by the scenario's word.

    Where the scenario says nothing, other ranks may save, too.
    """
    return context.scenario.job.savers == "replica groups" and _SAVE_BEGUN <= at.phase < _SAVED


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
