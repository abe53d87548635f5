"""The plan for spikes: how far states can be compared after one, and why nothing is rolled back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chaos.plan.change import Change
from chaos.plan.checkpoints.periodic import last_saved_before
from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.response import Recovery
from chaos.plan.problems import Problems
from chaos.plan.recovery.vendor import DOCUMENT
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario


def spikes(draft: Draft) -> list[Scheduled]:
    """Return the faults by which ranks compute an abnormal result."""
    return [fault for fault in draft.faults if fault.effect.alters == "norm"]


def check_spikes(draft: Draft, problems: Problems) -> None:
    """Note spikes that nothing in a job of this kind can make, or that nothing could show."""
    job, traits = draft.scenario.job, draft.traits
    for spike in spikes(draft):
        name, path = spike.fault.id, spike.path
        if not traits.spikes:
            message = f"in a job of kind {job.kind!r} nothing can scale the gradients"
            problems.add(f"{path}.kind", message, text=spike.fault.kind, hint="no agent sees its gradients before")
            continue
        for key in sorted({"norm", "factor"} & spike.fault.parameters.keys() - traits.spikes):
            problems.add(
                f"{path}.parameters.{key}",
                f"in a job of kind {job.kind!r} the gradients are reduced inside the framework, so a rank does not "
                f"know those of the others, and cannot reach a {key}",
                text=key,
                hint=f"write {', '.join(sorted(traits.spikes))}",
            )
        if traits.gradients:
            continue
        if draft.scenario.baseline == "none":
            problems.add(
                f"{path}.kind",
                f"only the fault-free run shows the effect of fault {name!r}, but baseline is none "
                f"({problems.where('baseline')})",
                text=spike.fault.kind,
                hint="set baseline: auto",
            )
        if spike.moment.earliest.step < 2:
            problems.add(
                f"{path}.trigger.step",
                f"fault {name!r} comes in step 1, so no step before it can show that the job is the baseline's",
                text=1,
                hint="use a step from 2",
            )


def spike_changes(draft: Draft, recoveries: Sequence[Recovery]) -> Iterator[Change]:
    """Yield the spikes behind which something cannot be compared."""
    broken = {
        name
        for recovery in recoveries
        if recovery.reads_checkpoint and not recovery.succeeds
        for name in recovery.faults
    }
    for spike in spikes(draft):
        is_broken = spike.fault.id in broken
        limit = _limit(draft.scenario, spike, broken=is_broken)
        if limit is not None:
            lasting = _is_unpromised(draft.scenario, spike) and not is_broken
            unseen = not draft.traits.gradients
            yield Change(spike, limit, lasting, silent=unseen, shown_by_state="a spike" if unseen else "")


def _limit(scenario: Scenario, spike: Scheduled, *, broken: bool) -> Comparable | None:
    """Return how far states and losses can be compared because of one spike; None where all of them can.

    ``broken``: its rollback is broken off.
    """
    fault, step = spike.fault, spike.moment.earliest.step
    if spike.repaired_by is None:
        return _until(step - 1, f"fault {fault.id} changes the update of step {step}, and nothing undoes that")
    if broken:
        return _until(step - 1, f"the rollback is broken off, so the abnormal step {step} is not trained again")
    if _is_unpromised(scenario, spike):
        return _until(
            last_saved_before(step, scenario.job.checkpoint_interval) - 1,
            f"with {spike.repaired_by} and asynchronous checkpoints together the loss after the rollback is not "
            f"promised to be the same as before ({DOCUMENT}, {spike.repaired_by})",
        )
    if fault.parameters.get("repeat", 0):
        return _until(step - 1, f"fault {fault.id} spikes again in step {step}, which is rolled back only once")
    return None


def _is_unpromised(scenario: Scenario, spike: Scheduled) -> bool:
    """Return whether the rollback itself leaves open the values that are computed after it."""
    return spike.repaired_by is not None and scenario.job.storage.asynchronous_saving


def _until(step: int, why: str) -> Comparable:
    return Comparable(step, step + 1, why)


def explain_spikes(draft: Draft) -> tuple[str, ...]:
    """Return why nothing is rolled back for a spike, and the outcome of a repeated one."""
    watch = draft.scenario.job.tre
    explanations = []
    for spike in spikes(draft):
        fault, step = spike.fault, spike.moment.earliest.step
        who = f"the gradients of {ranks(fault.ranks)} spike in step {step}"
        if spike.repaired_by is not None:
            if fault.parameters.get("repeat", 0):
                explanations.append(
                    f"{who} again when it is replayed: its norm is recorded, and training goes on ({DOCUMENT})"
                )
        elif watch is None:
            explanations.append(f"{who}, and nothing watches the global norm")
        elif step in watch.recorded:
            explanations.append(
                f"{who}, which abnormal_global_norm.json of an earlier run lists already: its norm is recorded, and "
                f"training goes on ({DOCUMENT})"
            )
        else:
            norm = fault.parameters.get("norm")
            explanations.append(
                f"{who} to a global norm of {norm}, below the threshold {watch.threshold:g}: nothing happens"
            )
    return tuple(explanations)
