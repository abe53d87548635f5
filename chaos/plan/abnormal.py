"""Abnormal results: which spikes are rolled back, and to where.

The plan never looks at a run, so a spike must say what it comes to: the global norm itself (``norm``), or a ``factor``
that the plan takes for large enough. Check ``injection`` then asks the run whether it came to that.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.model import PlannedFault
from chaos.scenario.model import Scenario
from chaos.scenario.terms import Mechanism


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
