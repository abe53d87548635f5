"""Part of check ``loss``: the optimizer's numbers, such as its learning rate, against the fault-free run.

A schedule that begins anew after a resume changes the learning rate first, and the weights one step later. PyTorch's
optimizers show these numbers. Where the run need not be exact they may follow the loss, and are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.baseline import Baseline, at_baseline
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.plan.model import Plan

EXPECTED = "the optimizer's numbers (learning rate and others) are the fault-free run's at every step that counts"
FIELD = "hyperparameters"


def judge_hyperparameters(
    plan: Plan, baseline: Baseline, events: Mapping[tuple[int, int], Event], collector: Collector
) -> None:
    """Judge the numbers of every step that counts. Says nothing where the fault-free run has recorded none."""
    if not plan.equivalence.exact:
        return
    compared, wrong = 0, set()
    for (rank, step), ours in sorted(events.items()):
        other = baseline.digests.get(rank, {}).get(step)
        if other is None or not _numbers(other) or rank in wrong:
            continue
        if plan.equivalence.comparable is not None and step > plan.equivalence.comparable.until:
            continue
        if not _numbers(ours):
            observation = f"rank {rank} has recorded none at step {step}"
            collector.unknown(EXPECTED, observation, ours.source, data=about(rank, step=step))
            wrong.add(rank)
            continue
        compared += 1
        if names := _differing(_numbers(ours), _numbers(other)):
            wrong.add(rank)
            _report(rank, step, names, ours, other, collector)
    if compared:
        collector.settle(EXPECTED, f"they are, in {compared} steps of {plan.layout.ranks} ranks")


def _numbers(event: Event) -> Mapping[str, object]:
    numbers = event.data.get(FIELD)
    return numbers if isinstance(numbers, dict) else {}


def _differing(ours: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))


def _report(rank: int, step: int, names: list[str], ours: Event, other: Event, collector: Collector) -> None:
    name = names[0]
    seen, expected = _numbers(ours).get(name), _numbers(other).get(name)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    observation = f"first at rank {rank}, step {step}: {name} is {seen}, and {expected} in the fault-free run{more}"
    data = about(rank, step=step, quantity=name, expected=str(expected), seen=str(seen))
    collector.fail(EXPECTED, observation, ours.source, at_baseline(other), data=data)
