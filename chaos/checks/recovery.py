"""Check ``recovery``: every phase of the recovery, and the whole, keep to their budgets, with the aids that it has."""

from __future__ import annotations

from chaos.checks.aids import judge_aids
from chaos.checks.artifacts import Artifacts
from chaos.checks.collect import Collector
from chaos.checks.finding import Finding
from chaos.checks.phases import measure
from chaos.history.reader import History
from chaos.plan.model import Plan

NAME = "recovery"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge each phase, and the total. A phase that cannot be measured is unknown, with or without a budget."""
    found = Collector(NAME)
    recovery = measure(plan, history, artifacts)
    for phase in recovery.phases:
        budget = plan.budget.phases.get(phase.name)
        _judge(plan, phase.name, phase.nanoseconds, budget, phase.reason, phase.where, found)
    if recovery.phases:
        where = recovery.phases[-1].where
        _judge(plan, "total", recovery.total, plan.budget.total, recovery.reason, where, found)
    judge_aids(plan, history, artifacts, found)
    return found.findings()


def _judge(
    plan: Plan,
    name: str,
    nanoseconds: int | None,
    budget: float | None,
    reason: str,
    where: tuple[str, ...],
    found: Collector,
) -> None:
    line = _line(plan, name)
    what = f"{name}{_of_which(plan)}"
    expected = f"{what} is measured" if budget is None else f"{what} ≤ {budget:g} s"
    if nanoseconds is None:
        found.unknown(expected, reason, line)
    elif budget is not None and nanoseconds > budget * 1e9:
        found.fail(expected, seconds(nanoseconds), line, *where)
    found.settle(expected, "" if nanoseconds is None else seconds(nanoseconds), line, *where)


def _of_which(plan: Plan) -> str:
    return f" of the last of {len(plan.goes_on)} recoveries" if len(plan.goes_on) > 1 else ""


def _line(plan: Plan, name: str) -> str:
    for key in (f"recovery.{name}", f"recovery.phases.{name}", "recovery"):
        if key in plan.lines:
            return f"scenario.yaml:{plan.lines[key]}"
    return ""


def seconds(nanoseconds: int) -> str:
    """``2.04 s``: three digits after the point, as many more as are needed to tell it from a rounder number above."""
    text = f"{nanoseconds / 1e9:.3f}"
    return f"{text} s" if round(float(text) * 1e9) >= nanoseconds else f"{nanoseconds / 1e9:.9f}".rstrip("0") + " s"
