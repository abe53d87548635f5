"""Statements of the scenario that the fault-free run contradicts: the number of steps, the interval of saves.

No verdict follows from it: the checks compare what the scenario says with the run. The reader learns in time what to
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.facts import TRAIN, by_rank
from chaos.history.reader import History
from chaos.plan.model import Plan


def misstated(plan: Plan, baseline: History) -> Iterator[str]:
    """Yield a sentence for each value, with the one to write. Says nothing where the ranks do not agree."""
    ends = by_rank(baseline, "step.end", TRAIN)
    last = {events[-1].data.get("step") for events in ends.values()}
    steps = last.pop() if len(last) == 1 and len(ends) == plan.layout.ranks else None
    if isinstance(steps, int) and steps != plan.training.last_step:
        yield (
            f"the fault-free run trains {steps} steps, and job.steps says {plan.training.last_step}: "
            f"write steps: {steps}, or mend the job"
        )
    every, stated = _interval(baseline), plan.training.checkpoint_interval
    if every is not None and stated is not None and every != stated:
        yield (
            f"the fault-free run saves every {every} steps, and job.checkpoint_interval says {stated}: "
            f"write checkpoint_interval: {every}, or mend the job"
        )


def _interval(baseline: History) -> int | None:
    """Return the distance of the saves, None where they are not at regular distances from the beginning."""
    recorded = (event.data.get("step") for event in baseline.select("checkpoint.end", kind="periodic"))
    steps = sorted({step for step in recorded if isinstance(step, int) and step > 0})
    regular = bool(steps) and steps == [number * steps[0] for number in range(1, len(steps) + 1)]
    return steps[0] if regular else None
