"""Part of check ``loss``: what a tolerance leaves open by the record of the fault-free run.

A pattern of limits may fit no parameter, or none that an earlier pattern leaves. Limits tell nothing that the training
itself does not exceed: where the state before the recovery passes for the last one, a resume that trained nothing, or
another number of steps, would pass as well. Without a record of moments only the losses would show that they were lost,
and the tolerance may hide that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.checks.scope import NotChecked
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline, differing
from chaos.evidence.checkpoints.parameters import is_slot
from chaos.evidence.facts import TRAIN
from chaos.evidence.tolerances.agreement import agreement, limit_of
from chaos.evidence.tolerances.losses import mean_begins
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


def limits_left_out(plan: Plan, history: History, artifacts: Artifacts) -> Iterator[NotChecked]:
    """Yield limits that fit nothing, or that no training after the recovery exceeds, and moments without a record."""
    baseline = Baseline(plan, history, artifacts)
    if plan.equivalence.exact or not baseline.is_requested or baseline.objection is not None:
        return
    if not any(map(is_slot, _names(baseline))):
        reason = "no rank records any: a script whose lines name its state names its optimizer, too"
        yield NotChecked("loss", "moments of the optimizer against the fault-free run", reason)
    fitting = {limit.pattern for name in set(_names(baseline)) if (limit := limit_of(plan, name)) is not None}
    for limit in plan.equivalence.state_tolerances:
        if limit.pattern not in fitting:
            reason = "they fit no parameter that no earlier pattern fits"
            yield NotChecked("loss", f"limits of {limit.pattern} in expect.loss.state", reason)
    blind: dict[str, bool] = {}
    before, last = mean_begins(plan) - 1, _last_step(plan)
    for rank in range(plan.layout.ranks):
        first, end = _states(baseline, rank, before, last)
        if first is not None and end is not None:
            for pattern, passes in _passing(plan, first, end):
                blind[pattern] = blind.get(pattern, True) and passes
    for pattern in sorted(pattern for pattern, passes in blind.items() if passes):
        what = f"whether {'weights and optimizer state' if pattern == '*' else pattern} went on after step {before}"
        reason = f"from there to step {last} the fault-free run itself changes them by less than the limits"
        yield NotChecked("loss", what, reason)


def _names(baseline: Baseline) -> Iterator[str]:
    for by_step in baseline.digests.values():
        for event in by_step.values():
            yield from event.data.get("parameters") or ()


def _last_step(plan: Plan) -> int:
    comparable = plan.equivalence.comparable
    return plan.training.last_step if comparable is None else min(comparable.until, plan.training.last_step)


def _states(baseline: Baseline, rank: int, before: int, last: int) -> tuple[Event | None, Event | None]:
    """Return the fault-free states before the recovery and at the end; None where they are not recorded."""
    recorded: Mapping[int, Event] = {
        step: event for step, event in baseline.digests.get(rank, {}).items() if event.data.get("parameters")
    }
    earlier, later = ([step for step in recorded if low < step <= high] for low, high in ((0, before), (before, last)))
    history = baseline.artifacts.baseline
    start = None if history is None else history.first("initial", attempt=TRAIN, rank=rank)
    return recorded[max(earlier)] if earlier else start, recorded[max(later)] if later else None


def _passing(plan: Plan, first: Event, end: Event) -> Iterator[tuple[str, bool]]:
    """Yield the pattern of each parameter that has changed, and whether its first state passes for its last one."""
    for name in differing(first.data["parameters"], end.data["parameters"]):
        limit = limit_of(plan, name)
        if limit is not None and not (limit.norm is None and limit.sample is None):
            yield limit.pattern, agreement(plan, [name], first, end).verdict == "pass"
