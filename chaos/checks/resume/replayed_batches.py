"""Part of check ``resume``: after a recovery within the launch every kept step has the batch of the fault-free run."""

from __future__ import annotations

from chaos.checks.resume.batches import EXPECTED, compare_batches, judge_lacking
from chaos.evidence.baseline import Baseline
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, by_rank, digests, step_of
from chaos.evidence.recovery_windows import Window, trains_to_the_end
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


def judge_replayed_batches(
    plan: Plan, history: History, baseline: Baseline, planned: list[Window], collector: Collector
) -> None:
    """Judge that every kept training of a step had the batch of the fault-free run."""

    def counts(event: Event) -> bool:
        return not planned or event.mono >= planned[0].begin

    compared = compare_batches(plan, history, baseline, None, counts, collector)
    if compared is None:
        return
    recorded = digests(history, TRAIN)
    missing = {
        rank: _reached(plan, history, baseline, rank) - recorded.get(rank, {}).keys() - _unended(planned, rank)
        for rank in compared
    }
    judge_lacking(compared, missing, " after the recovery", collector)
    collector.settle(EXPECTED, f"{sum(compared.values())} batches after the recovery, and those before it, are equal")


def _reached(plan: Plan, history: History, baseline: Baseline, rank: int) -> set[int]:
    """Return the steps with a batch that the rank must have recorded: all, unless a later fault has ended the job."""
    all_steps = set(baseline.digests.get(rank, {}))
    if trains_to_the_end(plan):
        return all_steps
    ends = by_rank(history, "step.end", TRAIN).get(rank, [])
    last = max((step_of(event) for event in ends), default=0)
    return {step for step in all_steps if step <= last}


def _unended(planned: list[Window], rank: int) -> set[int]:
    """Return the common steps in which a rank was hit after its update: its own record of the step may be missing."""
    return {window.step for window in planned if rank in window.hit}
