"""The launch that meets damage to a checkpoint: of a job that is started again, or the same after a restart within it.

Damage after the end of a rank is met when the job is started again. A restart within the launch leaves no time for it,
so such damage comes before the loss, while the rank is held (:mod:`chaos.plan.recovery.damage_before`).
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import MEETING_DAMAGE
from chaos.plan.recovery.outcome import Outcome
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import ExpectResume, Scenario

_EARLIER = "let it come before the loss and behind the save of the checkpoint: a trigger with step and phase"


def check_met(draft: Draft, outcome: Outcome, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note damage that no launch would meet, whose moment is left to chance, or whose outcome is not known."""
    within = {rank for recovery in outcome.recoveries for rank in recovery.damaged}
    met = [fault for fault in faults if within.issuperset(fault.fault.ranks)]
    rest = [fault for fault in faults if fault not in met]
    if met and not outcome.goes_on:
        _refuse_end(met[0], outcome, problems)
    elif met:
        _check_script(draft, met[0], problems)
    if rest and any(recovery.mechanism in MEETING_DAMAGE for recovery in outcome.recoveries):
        _refuse_late(rest[0], outcome, problems)
        return
    for fault in rest:
        _check_moment(fault, draft.faults, problems)
    if rest:
        _check_launch(draft, outcome, rest[0], problems)


def _refuse_end(fault: Scheduled, outcome: Outcome, problems: Problems) -> None:
    """Note damage before a restart within the launch where the job ends later: one key would state two steps."""
    problems.add(
        f"{fault.path}.kind",
        f"fault {fault.fault.id!r} damages a checkpoint before a restart within the launch, and the job ends after a "
        f"later fault ({problems.where(outcome.cause)}): expect.resume cannot state both steps at which it goes on",
        text=fault.fault.kind,
        hint="leave the later fault out, or allow more restarts (job.restart_limit)",
    )


def _refuse_late(fault: Scheduled, outcome: Outcome, problems: Problems) -> None:
    """Note damage that may come when the ranks have loaded the checkpoint, since nothing waits for it."""
    recovery = next(recovery for recovery in outcome.recoveries if recovery.mechanism in MEETING_DAMAGE)
    problems.add(
        f"{fault.path}.trigger",
        f"fault {fault.fault.id!r} does not certainly come before a restart within the launch: {outcome.why}. "
        f"{recovery.mechanism} leaves no time to damage a checkpoint afterwards",
        text=", ".join(fault.fault.trigger),
        hint=_EARLIER,
    )


def _check_script(draft: Draft, fault: Scheduled, problems: Problems) -> None:
    """Note a job whose script is not the user's own: what it makes of a damaged checkpoint is not planned."""
    if draft.scenario.job.script is None or not draft.traits.resumes_periodic:
        problems.add(
            f"{fault.path}.kind",
            f"fault {fault.fault.id!r} damages a checkpoint before a restart within the launch, and a job of kind "
            f"{draft.scenario.job.kind!r} with its script does not define how to go on from one",
            text=fault.fault.kind,
            hint="use a script of kind torch",
        )


def _check_launch(draft: Draft, outcome: Outcome, first: Scheduled, problems: Problems) -> None:
    """Note damage that no launch of a job that is started again would meet."""
    scenario, traits = draft.scenario, draft.traits
    if scenario.job.checkpoint_interval is None:
        problems.add(
            f"{first.path}.kind",
            f"fault {first.fault.id!r} damages a periodic checkpoint, but the job saves none "
            f"({problems.where('job.checkpoint_interval')})",
            text=first.fault.kind,
            hint="set job.checkpoint_interval",
        )
    elif outcome.mechanism != "none" or outcome.loss is None:
        problems.add(
            f"{first.path}.kind",
            f"fault {first.fault.id!r} damages a periodic checkpoint, but no launch starts from one: {outcome.why}. "
            "Damage to an end-of-life checkpoint, or before a recovery within the launch, is not yet supported by this "
            "version; before a restart by torchrun it is",
            text=first.fault.kind,
            hint="kill the ranks with no mechanism in job.protection, or with ELASTIC alone",
        )
    else:
        _check_outcome(scenario, first, traits, problems)


def _check_outcome(scenario: Scenario, first: Scheduled, traits: JobTraits, problems: Problems) -> None:
    """Note a job whose way on from damaged files is not known."""
    own = scenario.job.script is not None
    if scenario.job.resume and own and traits.resumes_periodic:
        if not isinstance(scenario.expect.resume, ExpectResume):
            problems.add(
                f"{first.path}.kind",
                f"fault {first.fault.id!r} damages a periodic checkpoint, and the plan does not know whether the "
                "script notices that and goes on from an earlier one",
                text=first.fault.kind,
                hint="write expect.resume: {step: N}, the step behind the checkpoint from which the script has to go "
                "on; no script may go on from the damaged one",
            )
    elif not scenario.job.resume or own or not (traits.group_info or traits.any_replica or traits.restarts):
        problems.add(
            f"{first.path}.kind",
            f"fault {first.fault.id!r} damages a periodic checkpoint, but the outcome is not known: the job is not "
            f"started again, or its kind {scenario.job.kind!r} with its script does not define how to resume from "
            "damaged periodic checkpoints",
            text=first.fault.kind,
            hint="use the built-in script of kind plain or rehearsal, a job of MindFormers, or a script of kind "
            "mindspore or torch, and job.resume: true",
        )


def _check_moment(fault: Scheduled, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note ranks that live at the fault's moment: a living rank may save another file at any moment."""
    trigger = fault.fault.trigger
    ending = next((candidate for candidate in faults if candidate.fault.id == trigger.get("after")), None)
    if trigger.keys() == {"after"} and ending is not None:
        if ending.effect.ends and set(fault.fault.ranks) <= set(ending.fault.ranks):
            return
        living = sorted(set(fault.fault.ranks) - (set(ending.fault.ranks) if ending.effect.ends else set()))
        problems.add(
            f"{fault.path}.target",
            f"fault {fault.fault.id!r} damages the newest checkpoint of rank {living[0]}, which still lives after "
            f"fault {ending.fault.id!r} ({problems.where(ending.path)}) and may save another one",
            text=f"rank {living[0]}",
            hint="hit ranks that the fault before has killed",
        )
        return
    problems.add(
        f"{fault.path}.trigger",
        f"fault {fault.fault.id!r} damages the newest checkpoint of its ranks, so it must come after their last save",
        text=", ".join(trigger),
        hint="let it wait for the fault that kills them: after, and nothing else",
    )
