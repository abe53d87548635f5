"""Abnormal results: which spikes reach the threshold, and which checkpoint is the newest then.

The plan never looks at a run, so a spike must say what it comes to: the global norm itself (``norm``), or a ``factor``
that the plan takes for large enough. Check ``injection`` then asks the run whether it came to that.
"""

from __future__ import annotations

from chaos.plan.parts.fault import PlannedFault


def over(fault: PlannedFault, threshold: float) -> bool:
    """Whether the norm that the spike asks for reaches the threshold."""
    norm = fault.parameters.get("norm")
    return isinstance(norm, (int, float)) and norm >= threshold


def last_saved_before(step: int, interval: int | None) -> int:
    """Step of the newest periodic checkpoint when ``step`` ends abnormally, 0 if there is none.

    The step itself is not saved: its norm is looked at before.
    """
    return 0 if interval is None else (step - 1) // interval * interval
