"""Abnormal results: which spikes are rolled back, and how far a run can be compared with the fault-free one.

The plan never looks at a run, so a spike must say what it comes to: the global norm itself (``norm``), or a ``factor``
that the plan takes for large enough. Check ``injection`` then asks the run whether it came to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chaos.plan.describe import ranks
from chaos.plan.mechanism import DOCUMENT
from chaos.plan.model import Comparable, PlannedFault, Recovery
from chaos.scenario.model import Scenario
from chaos.scenario.terms import Mechanism

if TYPE_CHECKING:
    from chaos.plan.schedule import Scheduled


def rolled_back(scenario: Scenario, fault: PlannedFault, on: Sequence[Mechanism]) -> bool:
    """Whether TRE answers this spike: it reaches the threshold, in a step that no record of an earlier run lists."""
    watch = scenario.job.tre
    if watch is None or "TRE" not in on or fault.trigger.get("step") in watch.recorded:
        return False
    return "norm" not in fault.parameters or over(fault, watch.threshold)


def over(fault: PlannedFault, threshold: float) -> bool:
    """Whether the norm that the spike asks for reaches the threshold."""
    norm = fault.parameters.get("norm")
    return isinstance(norm, (int, float)) and norm >= threshold


def last_saved_before(step: int, interval: int | None) -> int:
    """Step of the newest periodic checkpoint when ``step`` ends abnormally, 0 if there is none.

    The step itself is not saved: its norm is looked at before.
    """
    return 0 if interval is None else (step - 1) // interval * interval


def comparable(scenario: Scenario, spikes: Sequence[Scheduled], recoveries: Sequence[Recovery]) -> Comparable | None:
    """How far states can be compared with those of the fault-free run; None where all of them can."""
    broken = {name for one in recoveries if one.mechanism == "TRE" and not one.succeeds for name in one.faults}
    limits = [limit for spike in spikes if (limit := _limit(scenario, spike, spike.fault.id in broken)) is not None]
    return min(limits, key=lambda limit: limit.until, default=None)


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
