"""The steps whose state must be recorded although digests are thinned out."""

from __future__ import annotations

from chaos.plan.model import Plan


def digest_steps(plan: Plan, interval: int) -> tuple[int, ...]:
    """Return the steps that must have digests although they are thinned out: without them nothing could be compared."""
    if interval <= 1:
        return ()
    saved = [part.step for part in (plan.checkpoint, plan.resume.restore) if part is not None]
    # The effect of a spike is in the digest of its own step, and in the state before where that has no norm.
    spikes = [fault.trigger.get("step") for fault in plan.faults if fault.effect.alters == "norm"]
    # The changed state, and the state before.
    silent = [fault.trigger.get("step") for fault in plan.faults if fault.effect.alters == "value"]
    before = [step - 1 for step in (*spikes, *silent) if step is not None]
    recovered = [recovery.step for recovery in plan.response.recoveries]
    steps = [plan.training.last_step, *saved, *spikes, *silent, *before, *recovered]
    return tuple(sorted({step for step in steps if step is not None}))
