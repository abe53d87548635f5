"""TRE: an abnormal step is reverted to the newest periodic checkpoint, while every process lives on.

MindFormers' monitor throws a TREError at the end of the step, on every rank alike, since the reduced gradients are the
same on all; MindSpore's wrapper around the training loads the checkpoint and trains on. The SDK has no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.checkpoints.periodic import last_saved_before
from chaos.plan.describe import are_lost, ranks
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.problems import Problems
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.mechanism import NEEDS
from chaos.plan.recovery.response import PROVE_NONE, Answer, Context
from chaos.plan.recovery.vendor import DOCUMENT
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.parallel import effective_parallel
from chaos.scenario.models.scenario import Scenario

EXCLUSIVE = (
    "The check_for_global_norm and use_skip_data_by_global_norm cannot be turned on at the same time, "
    "please choose one."
)
"""MindFormers' error text for TRE together with data skipping."""

WHERE = "allreduce.enter"
"""Phase at which gradients are scaled: just before they are reduced."""

LOADING = "checkpoint.load"
_MARGIN = 0.01
"""A norm within this share of the threshold may fall on either side, by rounding."""


def over(fault: PlannedFault, threshold: float) -> bool:
    """Return whether the norm that the spike asks for reaches the threshold.

    The plan never looks at a run, so a spike must state its result: the global norm itself (``norm``), or a ``factor``
    that counts as large enough. Check ``injection`` then asks the run whether the result was reached.
    """
    norm = fault.parameters.get("norm")
    return isinstance(norm, (int, float)) and norm >= threshold


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return a rollback; None for an incident that is no abnormal result."""
    spike = incident.first
    if spike.repaired_by != "TRE":
        return None
    step = spike.moment.earliest.step
    saved = last_saved_before(step, context.scenario.job.checkpoint_interval)
    who = f"the gradients of {ranks(spike.fault.ranks)} spike in step {step}"
    if any(fault.handler is None for fault in incident.inside):
        return _broken_off(context, incident, saved)
    why = (
        f"{who}, so its global norm reaches the threshold on every rank: TRE takes all of them back to the newest "
        f"periodic checkpoint in their own processes ({DOCUMENT}, TRE)"
    )
    how = f"checkpoints are saved every {context.scenario.job.checkpoint_interval} steps, and the norm is looked at "
    how += f"before step {step} is saved, so the newest one holds step {saved}"
    recovery = Recovery("TRE", incident.ids, saved, reads_checkpoint=True)
    return Answer(recovery, why, spike.path, how=how)


def _broken_off(context: Context, incident: Incident, saved: int) -> Answer:
    """Return a rollback that is broken off.

    Ranks are lost while they load the checkpoint; the others go back, and wait for them in the next all-reduce.
    """
    dead = tuple(sorted({rank for fault in incident.inside for rank in fault.fault.ranks}))
    step = incident.first.moment.earliest.step
    cause = incident.inside[0].path
    why = (
        f"{are_lost(dead)} in the rollback from step {step} to step {saved}: the others go back and wait for the lost "
        f"in the all-reduce of step {saved + 1}. The error was thrown before the end of step {step} was reported, so "
        "the SDK holds the update of that step for unfinished on every rank, finds no complete copy of the state, and "
        "the job exits without an end-of-life checkpoint"
    )
    if context.scenario.expect.checkpoint != "none":
        context.problems.add(f"{cause}.trigger", why, text=LOADING, hint=PROVE_NONE)
    fault_ids = (*incident.ids, *(fault.fault.id for fault in incident.inside))
    recovery = Recovery("TRE", fault_ids, saved, succeeds=False, reads_checkpoint=True)
    left, loss = incident.after("TRE", incident.inside), context.loss(incident)
    return Answer(recovery, why, cause, ends=True, left=left, loss=loss, dead=dead)


def rolled_back(scenario: Scenario, fault: PlannedFault) -> bool:
    """Return whether a spike is answered: it reaches the threshold in a step that no earlier run's record lists."""
    watch = scenario.job.tre
    if watch is None or fault.trigger.get("step") in watch.recorded:
        return False
    return "norm" not in fault.parameters or over(fault, watch.threshold)


def check_abnormal(scenario: Scenario, faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note TRE's general restrictions, and spikes that cannot be made or whose outcome is not known."""
    spikes = [fault for fault in faults if fault.effect.alters == "norm"]
    _check_watch(scenario, problems, slices=traits.watches_slices and not spikes)
    steps: dict[int, Scheduled] = {}
    for spike in spikes:
        if not _check_place(spike, problems):
            continue
        _check_parameters(scenario, spike, problems)
        step = spike.moment.earliest.step
        if (other := steps.setdefault(step, spike)) is not spike:
            problems.add(
                f"{spike.path}.trigger.step",
                f"faults {other.fault.id!r} and {spike.fault.id!r} both spike in step {step}, so the resulting norm "
                "is undefined",
                text=step,
                hint="remove one of the two",
            )
        if spike.repaired_by is not None:
            _check_checkpoint(scenario, spike, problems)
            _check_background(scenario, spike, traits, problems)
            _check_others(scenario, spike, faults, problems)
    _check_loading(faults, problems)


def _check_watch(scenario: Scenario, problems: Problems, *, slices: bool) -> None:
    watch = scenario.job.tre
    if watch is None:
        return
    if watch.skip_data:
        problems.add("job.tre.skip_data", f"data skipping excludes TRE. MindFormers refuses both together: {EXCLUSIVE}")
    sizes = effective_parallel(scenario.cluster)
    sliced = sizes.model_parallel * sizes.pipeline_stage > 1 or sizes.enable_parallel_optimizer
    if sliced and not slices:
        problems.add(
            "job.tre",
            "the global norm is watched in jobs of pure data parallelism only, where every rank has all gradients; "
            "others are not yet supported by this version",
            hint="remove job.tre, or the parallel sizes",
        )
    if scenario.job.graph or scenario.job.storage.memory:
        problems.add(
            "job.tre",
            "a watched job that is compiled to a graph, or that keeps checkpoints in memory, is not yet supported by "
            "this version",
            hint="remove job.graph and job.storage.memory",
        )
    if "TRE" not in scenario.job.protection:
        problems.add(
            "job.tre",
            "job.tre watches the global norm, but TRE is not in job.protection: the error that the watch throws would "
            "only end the job",
            hint="add TRE to job.protection, or remove job.tre",
        )


def _check_place(spike: Scheduled, problems: Problems) -> bool:
    trigger = spike.fault.trigger
    if trigger.keys() == {"step", "phase"} and trigger["phase"] == WHERE:
        return True
    problems.add(
        f"{spike.path}.trigger",
        f"fault {spike.fault.id!r} scales gradients that are about to be reduced, so its trigger must be one step with "
        f"phase {WHERE} and nothing else",
        text=", ".join(trigger),
        hint=f"write step, and phase: {WHERE}",
    )
    return False


def _check_parameters(scenario: Scenario, spike: Scheduled, problems: Problems) -> None:
    parameters, path = spike.fault.parameters, f"{spike.path}.parameters"
    unknown = sorted(parameters.keys() - {"norm", "factor", "repeat"})
    if unknown:
        problems.add(path, f"a spike has no parameter {unknown[0]!r}", text=unknown[0], hint="norm, factor, repeat")
    if ("norm" in parameters) == ("factor" in parameters):
        problems.add(path, "a spike needs exactly one of norm and factor", hint="norm: the global norm of the step")
    for name in parameters.keys() & {"norm", "factor"}:
        value = parameters[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            problems.add(f"{path}.{name}", f"{name} must be a number above 0", text=value)
            return
    repeat = parameters.get("repeat", 0)
    if isinstance(repeat, bool) or repeat not in (0, 1):
        problems.add(f"{path}.repeat", "repeat must be 0 or 1: an abnormal step is trained twice at most", text=repeat)
    elif repeat and spike.repaired_by is None:
        message = f"repeat: step {spike.moment.earliest.step} is trained only once, since nothing undoes it"
        problems.add(f"{path}.repeat", message, text=repeat, hint="remove it")
    if "norm" in parameters:
        _check_norm(scenario, spike, problems)


def _check_norm(scenario: Scenario, spike: Scheduled, problems: Problems) -> None:
    norm, path = spike.fault.parameters["norm"], f"{spike.path}.parameters.norm"
    if len(spike.fault.ranks) != 1:
        problems.add(
            f"{spike.path}.target",
            f"a spike with a norm hits one rank, which works its factor out from what the others give; this one hits "
            f"{ranks(spike.fault.ranks)}",
            hint="hit one rank, or write factor in place of norm",
        )
    watch = scenario.job.tre
    if watch is not None and abs(norm - watch.threshold) < _MARGIN * watch.threshold:
        message = f"norm {norm} is so near to the threshold {watch.threshold:g} that rounding decides"
        problems.add(path, message, text=norm, hint=f"keep {_MARGIN:.0%} away from it")


def _check_checkpoint(scenario: Scenario, spike: Scheduled, problems: Problems) -> None:
    step, interval = spike.moment.earliest.step, scenario.job.checkpoint_interval
    if last_saved_before(step, interval) > 0:
        return
    has = (
        "no periodic checkpoint is saved"
        if interval is None
        else f"the first checkpoint is saved after step {interval}"
    )
    problems.add(
        "job.checkpoint_interval" if interval is not None else "job",
        f"TRE goes back to the newest periodic checkpoint, but when step {step} ends abnormally "
        f"({problems.where(spike.path)}) there is none: {has}",
        text="" if interval is None else interval,
        hint=f"set job.checkpoint_interval to less than {step}" if step > 1 else "let the spike come later",
    )


def _check_background(scenario: Scenario, spike: Scheduled, traits: JobTraits, problems: Problems) -> None:
    """Note a rollback to a save in the background that is not certain to be the newest one at the time."""
    step = spike.moment.earliest.step
    saved = last_saved_before(step, scenario.job.checkpoint_interval)
    if not scenario.job.storage.asynchronous_saving or not saved:
        return
    if traits.restarts:
        problems.add(
            "job.storage.asynchronous_saving",
            "MindFormers records a checkpoint that is written in the background at the end of some later step, so the "
            f"checkpoint for the rollback of fault {spike.fault.id!r} ({problems.where(spike.path)}) is not known",
            hint="save in the foreground",
        )
    elif step == saved + 1:
        problems.add(
            f"{spike.path}.trigger",
            f"fault {spike.fault.id!r} calls for a rollback at the end of step {step}, when the periodic checkpoint "
            f"of step {saved} is just being written in the background (job.storage.asynchronous_saving): whether the "
            "save finishes depends on timing",
            text=step,
            hint="use a later step, so that the checkpoint has been written; the run must prove that it was",
        )


def _check_others(scenario: Scenario, spike: Scheduled, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults beside a rollback that make its outcome unclear.

    Before a rollback other mechanisms have moved the checkpoints; in its step the ranks wait for each other.
    """
    at = spike.moment.earliest
    for other in faults:
        if other.effect.pauses:
            problems.add(
                f"{other.path}.kind",
                f"a pause beside the rollback that fault {spike.fault.id!r} ({problems.where(spike.path)}) calls for "
                "is not yet planned by this version",
                text=other.fault.kind,
                hint="write a scenario for each",
            )
        if other.effect.alters == "norm" or not (other.lethal or other.raised):
            continue
        if _in_rollback(other, at.step):
            if not any(mechanism in NEEDS["MindIO"] for mechanism in scenario.job.protection):
                problems.add(
                    f"{other.path}.trigger",
                    f"fault {other.fault.id!r} takes a rank in the rollback, and with TRE alone nothing detects the "
                    "loss: the others wait for the rank until the collective times out, and nothing can be judged",
                    hint="add TTP to job.protection",
                )
            continue
        if other.handler is None and other.moment.exact and other.moment.earliest.step > at.step:
            continue
        problems.add(
            f"{other.path}.trigger",
            f"fault {other.fault.id!r} may come before the rollback that fault {spike.fault.id!r} "
            f"({problems.where(spike.path)}) calls for in step {at.step}; which checkpoint is the newest one then is "
            "not yet planned by this version",
            hint=f"use a step after {at.step}, or step {at.step} with phase {LOADING}",
        )


def _check_loading(faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults at the loading of a checkpoint outside a rollback: only a rollback loads one."""
    steps = {fault.moment.earliest.step for fault in faults if fault.repaired_by == "TRE"}
    for fault in faults:
        for part in (fault.fault.trigger, *fault.fault.trigger.get("all", ()), *fault.fault.trigger.get("any", ())):
            if part.get("phase") == LOADING and part.get("step") not in steps:
                problems.add(
                    f"{fault.path}.trigger.phase",
                    f"fault {fault.fault.id!r} is never reached: nothing loads a checkpoint in step {part.get('step')}",
                    text=LOADING,
                    hint="use the step of a spike that TRE answers",
                )


def _in_rollback(fault: Scheduled, step: int) -> bool:
    return fault.moment.exact and fault.moment.earliest == Point(step, PHASE_ORDER.index(LOADING))
