"""Part of check ``loss``: the mean loss after the recovery, where the plan has a tolerance for it."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.baseline import Baseline, loss_of
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import LOSS, about
from chaos.evidence.tolerances.losses import mean_begins, mean_difference
from chaos.history.event import Event
from chaos.plan.model import Plan


def judge_mean(
    plan: Plan, baseline: Baseline, events: Mapping[tuple[int, int], Event], line: str, collector: Collector
) -> None:
    """Judge the mean loss of every rank that has losses here and in the baseline."""
    most, comparable = plan.equivalence.mean_tolerance, plan.equivalence.comparable
    if most is None or comparable is not None:
        return  # where a value was changed on purpose, single losses are compared as far as they can be
    collector.close()
    begins = mean_begins(plan)
    expected = f"the mean loss from step {begins} on equals the fault-free run's, within {most:g} relative"
    largest, compared = 0.0, 0
    for rank in filter(plan.layout.has_loss, range(plan.layout.ranks)):
        theirs = _losses({step: event for step, event in baseline.digests.get(rank, {}).items() if step >= begins})
        ours = _losses({step: event for (of, step), event in events.items() if of == rank and step >= begins})
        if not theirs:
            continue
        apart = mean_difference(ours, theirs)
        if apart is None or theirs.keys() - ours.keys():
            collector.unknown(expected, f"losses of rank {rank} are missing", line, data=about(rank, step=begins))
            continue
        compared, largest = compared + 1, max(largest, apart)
        if apart and (why := plan.equivalence.why_outdated):
            observation = f"the mean loss of rank {rank} is off by {apart:.3g}; {why}"
            collector.unknown(expected, observation, line, data=about(rank, step=begins, quantity=LOSS, seen=apart))
        elif not apart <= most:
            observation = f"the mean loss of rank {rank} is off by {apart:.3g}"
            collector.fail(expected, observation, line, data=about(rank, step=begins, quantity=LOSS, seen=apart))
    if not compared:
        collector.unknown(expected, "not one mean loss can be compared", line)
    collector.settle(expected, f"{compared} ranks are, the largest difference is {largest:.3g}", line)


def _losses(events: Mapping[int, Event]) -> dict[int, float]:
    return {step: loss for step, event in events.items() if (loss := loss_of(event)) is not None}
