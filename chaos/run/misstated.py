"""Statements of the scenario that the fault-free run contradicts: the number of steps, the interval of saves, the
timeout of the process group, the shards of the state.

No verdict follows from it: the checks compare what the scenario says with the run. The reader learns in time what to
write.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.checks.consistency.shards import contradictions
from chaos.evidence.facts import TRAIN, by_rank
from chaos.history.reader import History
from chaos.plan.model import Plan


def misstated(plan: Plan, baseline: History, group_timeout: float | None = None) -> Iterator[str]:
    """Yield a sentence for each value, with the one to write. Says nothing where the ranks do not agree.

    Args:
        plan: the plan of the cell.
        baseline: the history of its fault-free run.
        group_timeout: the timeout of the process group by the scenario, in seconds.
    """
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
    timeout = _group_timeout(baseline)
    if timeout is not None and group_timeout is not None and timeout != group_timeout:
        yield (
            f"the script of the fault-free run gives init_process_group a timeout of {timeout:g} s, and "
            f"job.torchrun.group_timeout says {group_timeout:g} s: write group_timeout: {timeout:g}s, or mend the job"
        )
    for found in contradictions(plan, baseline, TRAIN):
        yield f"in the fault-free run, {found.text}"


def _interval(baseline: History) -> int | None:
    """Return the distance of the saves, None where they are not at regular distances from the beginning."""
    recorded = (event.data.get("step") for event in baseline.select("checkpoint.end", kind="periodic"))
    steps = sorted({step for step in recorded if isinstance(step, int) and step > 0})
    regular = bool(steps) and steps == [number * steps[0] for number in range(1, len(steps) + 1)]
    return steps[0] if regular else None


def _group_timeout(baseline: History) -> float | None:
    """Return the timeout that every rank gives its process group, in seconds; None where they differ or give none."""
    timeouts = {event.data.get("timeout") for event in baseline.select("group.ready", attempt=TRAIN)}
    timeout = timeouts.pop() if len(timeouts) == 1 else None
    return timeout if isinstance(timeout, float) else None
