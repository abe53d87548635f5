"""Distributed recovery: a job that ended without an end-of-life checkpoint is started again from periodic ones.

Every rank saves its own slices. Where the job knows the replica groups, another rank of the group, which holds the same
slices, replaces a lost file. Source: MindSpore, Distributed Fault Recovery. With MindFormers every rank goes on from
its own file, of a step that every rank has recorded, or none goes on. Source: MindFormers, tools/resume_ckpt.py and
utils/resume_ckpt_utils.py (2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chaos.plan.checkpoints.left import Left, holders_of, leaving_out, unusable_of
from chaos.plan.checkpoints.resume_key import resume_key, unless
from chaos.plan.checkpoints.saved import Damage
from chaos.plan.checkpoints.savers import check_savers, every_rank_saves
from chaos.plan.describe import group, ranks
from chaos.plan.draft import Draft
from chaos.plan.family_rules import saved_rules
from chaos.plan.parts.resume import PlannedRestore
from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.problems import Problems
from chaos.plan.recovery.outcome import Outcome
from chaos.plan.rules.shared_directory import check_shared
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import ExpectResume, Scenario

SOURCE = "MindSpore, Distributed Fault Recovery"

_RESTART = "MindFormers, resume training"

_SCRIPT = "and the scenario says that its script goes on from periodic ones ({})"

_IN_SAVE = ("save_ckpt", "rename")

_SAVED = PHASE_ORDER.index("checkpoint.end")


def writes_group_info(scenario: Scenario, groups: Sequence[tuple[int, ...]], traits: JobTraits) -> bool:
    """Return whether the job itself writes to ``group_info.pb`` which ranks hold the same slices."""
    return traits.group_info and scenario.job.script is None and len(groups) > 1


def plan_restore(draft: Draft, outcome: Outcome, problems: Problems) -> tuple[PlannedRestore | None, str]:
    """Return the checkpoints from which an ended job is started again, and why; None where it is not.

    A job that saves periodic checkpoints is started again unless the scenario says that it is not. Where it has none
    to go on from, it is started again only if a fault has removed or damaged them: it has to say so itself.
    """
    scenario, groups, faults, traits = draft.scenario, draft.groups, draft.faults, draft.traits
    losing = _losing(draft, outcome, problems)
    if outcome.mechanism != "none" or outcome.loss is None or not (losing or scenario.expect.resume != "none"):
        return None, ""
    interval = scenario.job.checkpoint_interval
    if interval is None or not scenario.job.resume or not _restores(scenario, groups, traits):
        return None, ""
    key = resume_key(scenario, losing)
    step = None if outcome.loss.at is None else outcome.loss.at.last_complete
    # A rank that a fault takes inside the end-of-life save has lived up to the last step and made every due save.
    lethal = [fault for fault in faults if fault.lethal and fault.handler not in _IN_SAVE]
    if step is None or not all(fault.moment.exact for fault in lethal):
        problems.add(
            key,
            f"the time at which the ranks are lost is open ({problems.where(outcome.cause)}), so the last periodic "
            "checkpoint is not known",
            hint=f"give every fault that takes ranks a step as its trigger{unless(key)}",
        )
        return None, ""
    _check_in_save(faults, outcome, interval, unless(key), problems)
    everyone = range(sum(map(len, groups)))
    if traits.restarts:
        _check_recorded(scenario, lethal, interval, unless(key), problems)
    last = _last_saved(everyone, lethal, step)
    damage = _damage(draft, last, interval, problems)
    left = Left(damage.lost, last, dict(damage.damaged), _any_replica(draft, damage), unusable_of(draft, damage))
    if traits.resumes_periodic and (stated := _stated_step(scenario, interval)) is not None:
        holders = holders_of(groups, stated, left)
        if holders is not None:
            why = f"step {stated} has been saved, {_SCRIPT.format(key)}{leaving_out(left)}"
            hit = any(fault.effect.changes_file for fault in draft.faults)
            return PlannedRestore(stated, left.lost, holders, left.damaged, stated=hit), why
    source = _SCRIPT.format(key) if traits.resumes_periodic else f"({_RESTART if traits.restarts else SOURCE})"
    newest = step - step % interval + interval
    own_only = traits.restarts or (traits.resumes_periodic and every_rank_saves(scenario))
    restore, why = _newest_complete(groups, left, newest, interval, traits, damage, source, own_only=own_only)
    if traits.resumes_periodic and not (own_only or isinstance(scenario.expect.resume, ExpectResume)):
        others, _ = _newest_complete(groups, left, newest, interval, traits, damage, source, own_only=True)
        check_savers(restore.step, others.step, key, problems)
    if restore.step is None and traits.resumes_periodic and left.damaged:
        problems.add(
            key,
            f"{why}, and what the script does without a checkpoint is not known",
            hint="let the ranks be lost later, or save more often",
        )
    if restore.step is None and not losing:
        return None, f"{why}, and the job is not started again"
    return restore, why


def _losing(draft: Draft, outcome: Outcome, problems: Problems) -> list[Scheduled]:
    """Return the faults that remove or damage saved checkpoints; note those that cannot be planned."""
    losing: list[Scheduled] = []
    for rules in saved_rules():
        rules.check(draft, outcome, problems)
        losing += rules.losing(draft)
    check_shared(draft, problems)
    return losing


def _damage(draft: Draft, last: Mapping[int, int], interval: int, problems: Problems) -> Damage:
    """Return what the faults of all families do to the saved checkpoints."""
    damages = [rules.damage(draft, last, interval, problems) for rules in saved_rules()]
    return Damage(
        tuple(sorted({rank for damage in damages for rank in damage.lost})),
        {rank: step for damage in damages for rank, step in damage.damaged.items()},
        frozenset(rank for damage in damages for rank in damage.renamed),
        min((damage.newest for damage in damages if damage.newest is not None), default=None),
        "; ".join(damage.why for damage in damages if damage.why),
    )


def _newest_complete(
    groups: Sequence[tuple[int, ...]],
    left: Left,
    newest: int,
    interval: int,
    traits: JobTraits,
    damage: Damage,
    source: str,
    *,
    own_only: bool,
) -> tuple[PlannedRestore, str]:
    """Return the newest step from which every rank can go on, and why; at most ``newest`` and the recorded step."""
    for candidate in range(newest if damage.newest is None else min(damage.newest, newest), 0, -interval):
        holders = holders_of(groups, candidate, left)
        if holders is not None and not (own_only and left.lacking(candidate)):
            why = _why(candidate, left, holders, source, own_only)
            why += f"; {damage.why}" if damage.why else ""
            return PlannedRestore(candidate, left.lost, holders, left.damaged, own=own_only), why
    hopeless = PlannedRestore(None, left.lost, {}, left.damaged, own=own_only)
    return hopeless, _why_not(groups, left, interval, traits)


def _restores(scenario: Scenario, groups: Sequence[tuple[int, ...]], traits: JobTraits) -> bool:
    """Return whether the job says how it goes on from periodic checkpoints."""
    by_itself = traits.any_replica and scenario.job.script is None
    return by_itself or traits.restarts or traits.resumes_periodic or writes_group_info(scenario, groups, traits)


def _any_replica(draft: Draft, damage: Damage) -> frozenset[int]:
    traits, groups = draft.traits, draft.groups
    if traits.resumes_periodic or not (traits.restarts or writes_group_info(draft.scenario, groups, traits)):
        return frozenset(rank for members in groups for rank in members)
    if traits.restarts:
        return frozenset()
    # The file is whole, so its rank may load it; a rank that goes by names may take a replica's.
    return damage.renamed


def _stated_step(scenario: Scenario, interval: int) -> int | None:
    """Return the step of the periodic checkpoint from which the scenario's script goes on, as the scenario says."""
    written = scenario.expect.resume
    step = written.step - 1 if isinstance(written, ExpectResume) else 0
    return step if step > 0 and step % interval == 0 else None


def _check_in_save(
    faults: Sequence[Scheduled], outcome: Outcome, interval: int, or_not: str, problems: Problems
) -> None:
    """Note a fault in an end-of-life save that may begin while its ranks still save the periodic checkpoint."""
    at = None if outcome.loss is None else outcome.loss.at
    if at is None or at.step % interval or not at.contributed or at.phase >= _SAVED:
        return
    for fault in (fault for fault in faults if fault.lethal and fault.handler in _IN_SAVE):
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} hits in the end-of-life save, and whether its ranks have finished the periodic "
            f"checkpoint of step {at.step} by then depends on timing: ranks are lost at {at}",
            text=fault.handler or "",
            hint=f"let the ranks be lost at step.begin of step {at.step + 1}{or_not}",
        )


def _check_recorded(
    scenario: Scenario, lethal: Sequence[Scheduled], interval: int, or_not: str, problems: Problems
) -> None:
    """Note saves that the records may not name yet: MindFormers writes the records behind the files.

    MindFormers goes on from the checkpoint that its records name.
    """
    if scenario.job.storage.asynchronous_saving:
        problems.add(
            "job.storage.asynchronous_saving",
            "MindFormers records a checkpoint that is written in the background at the end of some later step, so the "
            f"checkpoint from which the job resumes is not known ({_RESTART})",
            hint=f"save in the foreground{or_not}",
        )
        return
    for fault in lethal:
        at = fault.moment.earliest
        if at.phase == _SAVED and at.step % interval == 0:
            problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} hits when the file of step {at.step} is written and MindFormers has not "
                "recorded that (meta.json, latest_checkpointed_iteration.txt), so the job may go on from it or from "
                f"the one before ({_RESTART})",
                text="checkpoint.end",
                hint=f"take phase checkpoint.write, or step.begin of step {at.step + 1}{or_not}",
            )


def _last_saved(everyone: Sequence[int], lethal: Sequence[Scheduled], survived: int) -> dict[int, int]:
    """Return the last step whose periodic checkpoint each rank can have finished.

    Survivors finish the checkpoint of ``survived``.
    """
    last = dict.fromkeys(everyone, survived)
    for fault in lethal:
        for rank in fault.fault.ranks:
            last[rank] = min(last[rank], _finished(fault.moment.earliest))
    return last


def _finished(at: Point) -> int:
    return at.step if at.phase >= _SAVED else at.step - 1


def _why(step: int, left: Left, holders: Mapping[int, tuple[int, ...]], source: str, own_only: bool) -> str:
    has = "rank has its own" if own_only else "replica group has a"
    text = f"step {step} is the newest step for which every {has} periodic checkpoint {source}"
    text += leaving_out(left)
    replaced = "; ".join(
        f"rank {rank} loads that of {ranks(holders[rank])}"
        for rank in sorted({*left.lost, *left.damaged})
        if rank not in holders[rank]
    )
    return f"{text}, and a lost checkpoint is replaced by a replica's: {replaced}" if replaced else text


def _why_not(groups: Sequence[tuple[int, ...]], left: Left, interval: int, traits: JobTraits) -> str:
    if traits.restarts and left.lost:
        return (
            f"the files of {ranks(left.lost)} are lost, and each rank resumes from its own files only, so the job "
            f"cannot be resumed ({_RESTART})"
        )
    gone = next((members for members in groups if set(members) <= set(left.lost)), None)
    if gone is not None:
        return (
            f"the files of every rank of replica group {group(gone)} are lost, so its slices are lost and the job "
            f"cannot be resumed ({SOURCE})"
        )
    if left.damaged and traits.restarts:
        return (
            f"no step has an undamaged periodic checkpoint of every rank (one every {interval} steps), and each rank "
            f"resumes from its own files only, so there is nothing to resume from ({_RESTART})"
        )
    if left.damaged:
        return (
            f"no step has an undamaged periodic checkpoint of every replica group (one every {interval} steps), so "
            "there is nothing to resume from"
        )
    return f"no periodic checkpoint is complete (one every {interval} steps), so there is nothing to resume from"
