"""What a plan says about its spikes: how far states can be compared after them, and why nothing is rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.plan.abnormal import last_saved_before
from chaos.plan.describe import ranks
from chaos.plan.mechanism import DOCUMENT
from chaos.plan.model import Comparable, Recovery
from chaos.plan.schedule import Scheduled
from chaos.scenario.model import Scenario


def comparable(
    scenario: Scenario, spikes: Sequence[Scheduled], recoveries: Sequence[Recovery], more: Sequence[Comparable] = ()
) -> Comparable | None:
    """How far states can be compared with those of the fault-free run; None where all of them can.

    ``more`` are limits that come from elsewhere.
    """
    broken = {name for one in recoveries if one.mechanism == "TRE" and not one.succeeds for name in one.faults}
    limits = [limit for spike in spikes if (limit := _limit(scenario, spike, spike.fault.id in broken)) is not None]
    found = [*limits, *more]
    finite = min((one.finite_until for one in found if one.finite_until is not None), default=None)
    first = min(found, key=lambda limit: limit.until, default=None)
    return None if first is None else replace(first, finite_until=finite)


def _limit(scenario: Scenario, spike: Scheduled, broken: bool) -> Comparable | None:
    fault, step = spike.fault, spike.moment.earliest.step
    if spike.repaired_by is None:
        return Comparable(step - 1, f"fault {fault.id} changes the update of step {step}, and nothing takes that back")
    if broken:
        return Comparable(step - 1, f"the rollback is broken off, so the abnormal step {step} is not trained again")
    if scenario.job.storage.asynchronous_saving:
        return Comparable(
            last_saved_before(step, scenario.job.checkpoint_interval) - 1,
            f"with TRE and asynchronous checkpoints together the loss after the rollback is not promised to be the "
            f"same as before ({DOCUMENT}, TRE)",
        )
    if fault.parameters.get("repeat", 0):
        return Comparable(step - 1, f"fault {fault.id} spikes again in step {step}, which is rolled back only once")
    return None


def spike_reasons(scenario: Scenario, spikes: Sequence[Scheduled]) -> tuple[str, ...]:
    """Why nothing is rolled back for a spike, and what comes of one that is repeated."""
    watch = scenario.job.tre
    found = []
    for spike in spikes:
        fault, step = spike.fault, spike.moment.earliest.step
        who = f"the gradients of {ranks(fault.ranks)} spike in step {step}"
        if spike.repaired_by is not None:
            if fault.parameters.get("repeat", 0):
                found.append(
                    f"{who} again when it is replayed: its norm is recorded, and training goes on ({DOCUMENT})"
                )
        elif watch is None:
            found.append(f"{who}, and nobody watches the global norm")
        elif step in watch.recorded:
            found.append(
                f"{who}, which abnormal_global_norm.json of an earlier run lists already: its norm is recorded, and "
                f"training goes on ({DOCUMENT})"
            )
        else:
            norm = fault.parameters.get("norm")
            found.append(f"{who} to a global norm of {norm}, below the threshold {watch.threshold:g}: nothing happens")
    return tuple(found)
