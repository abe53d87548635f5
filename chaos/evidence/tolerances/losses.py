"""The mean loss after the recovery: the noise of single steps averages out in it, and a lasting drift does not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from chaos.plan.model import Plan


def mean_begins(plan: Plan) -> int:
    """Return the first step of the mean loss: by the plan alone, so that every run of the scenario has the same.

    It is the first step after the last recovery. Where the plan leaves that open, it is the first step of the second
    half.
    """
    if plan.resume.resume_step is not None:
        return plan.resume.resume_step
    steps = [recovery.step for recovery in plan.response.recoveries if recovery.step is not None]
    return max(steps) + 1 if steps else plan.training.last_step // 2 + 1


def mean_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """Return the difference of the mean losses of the same steps, relative to the second; None where there is none."""
    shared = ours.keys() & theirs.keys()
    if not shared:
        return None
    our_mean, their_mean = (math.fsum(losses[step] for step in shared) / len(shared) for losses in (ours, theirs))
    return relative_difference(our_mean, their_mean)


def relative_difference(ours: float, theirs: float) -> float:
    """Return the difference relative to ``theirs``; infinite where a value is not finite, or ``theirs`` alone is 0."""
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        return math.inf
    apart = abs(ours - theirs)
    return apart / abs(theirs) if theirs else (math.inf if apart else 0.0)
