"""The recoveries of a run for its page: phases against budgets and fault-free run, and when each fault was noticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.checks.judge import Judgement
from chaos.checks.recovery.measured import Phase as MeasuredPhase
from chaos.checks.recovery.measured import Recovery
from chaos.checks.recovery.measures import rollback
from chaos.checks.recovery.phases import measure_earlier
from chaos.evidence.recovery_windows import chains
from chaos.plan.model import Plan
from chaos.report.page.fault_free_start import fault_free_seconds
from chaos.report.page.model import Band, Phase, Waterfall
from chaos.report.page.moments import Clock

_NOTICED = "detection"
"""The phase at whose end a fault has been noticed."""


@dataclass(frozen=True)
class Measured:
    """A recovery with the ids of the faults that it answers.

    Only the recovery that decides has ``budgets``, and ``rollback``, the number of steps that were trained again.
    """

    faults: tuple[str, ...]
    recovery: Recovery
    budgets: Mapping[str, float]
    total: float | None
    rollback: float | None = None
    rollback_budget: int | None = None


def measured_recoveries(judgement: Judgement) -> tuple[Measured, ...]:
    """Return all recoveries of the run, in order; the last one decides."""
    budget = judgement.plan.response.budget
    again = _trained_again(judgement), budget.rollback
    last = Measured(_last_faults(judgement.plan), judgement.recovery, budget.phases, budget.total, *again)
    return (*_earlier(judgement), last)


def _trained_again(judgement: Judgement) -> float | None:
    try:
        return rollback(judgement.plan, judgement.history).value
    except ValueError:  # events whose data is missing; the checks report them
        return None


def _earlier(judgement: Judgement) -> Iterator[Measured]:
    try:
        earlier = measure_earlier(judgement.plan, judgement.history, judgement.artifacts)
    except Exception:  # nobody judges these figures; odd evidence must not keep the page from being made
        return
    for window, recovery in earlier:
        yield Measured(tuple(fault.id for fault in window.faults), recovery, {}, None)


def _last_faults(plan: Plan) -> tuple[str, ...]:
    """Return the faults that the last recovery answers, with those of the recoveries that were tried before it."""
    grouped = chains(plan)
    if not grouped:
        return tuple(fault.id for fault in plan.faults)
    return tuple(dict.fromkeys(fault for recovery in grouped[-1] for fault in recovery.faults))


def waterfalls(judgement: Judgement, measured: Sequence[Measured], clock: Clock) -> tuple[Waterfall, ...]:
    """Return each recovery by phases. A recovery without phases says why it has none."""
    baseline = judgement.artifacts.baseline
    return tuple(
        Waterfall(
            item.recovery.mechanism,
            item.faults,
            tuple(_phases(item, fault_free_seconds(baseline, [phase.name for phase in item.recovery.phases]), clock)),
            None if item.recovery.total is None else item.recovery.total / 1e9,
            item.total,
            item.recovery.reason,
            item.rollback,
            item.rollback_budget,
        )
        for item in measured
        if item.recovery.phases or item.recovery.reason
    )


def _phases(item: Measured, fault_free: Mapping[str, float], clock: Clock) -> Iterator[Phase]:
    for phase in item.recovery.phases:
        yield _phase(phase, item.budgets, fault_free, clock)


def _phase(phase: MeasuredPhase, budgets: Mapping[str, Any], fault_free: Mapping[str, float], clock: Clock) -> Phase:
    begin = None if phase.nanoseconds is None else clock.seconds(phase.begin)
    return Phase(phase.name, begin, phase.seconds, budgets.get(phase.name), fault_free.get(phase.name), phase.reason)


def bands(measured: Sequence[Measured], clock: Clock) -> Iterator[Band]:
    """Yield the phases of all recoveries with their times."""
    for item in measured:
        for phase in item.recovery.phases:
            if phase.nanoseconds is not None:
                yield Band(phase.name, clock.seconds(phase.begin), clock.seconds(phase.begin + phase.nanoseconds))


def noticed(measured: Sequence[Measured], clock: Clock) -> dict[str, float]:
    """Return when each fault was noticed, by its id, as far as it is known."""
    return {
        fault: clock.seconds(phase.begin + phase.nanoseconds)
        for item in measured
        for phase in item.recovery.phases
        if phase.name == _NOTICED and phase.nanoseconds is not None
        for fault in item.faults
    }
