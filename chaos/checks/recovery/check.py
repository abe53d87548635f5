"""Check ``recovery``: each phase of the recovery, and the whole, keep to their budgets, with the options of the job."""

from __future__ import annotations

from chaos.checks.recovery.left_out import budget_of, is_left_out
from chaos.checks.recovery.longest_step import judge_longest_step
from chaos.checks.recovery.measured import Phase
from chaos.checks.recovery.measures import rollback
from chaos.checks.recovery.pace import judge_pace
from chaos.checks.recovery.phases import measure
from chaos.checks.recovery.recovery_options import judge_recovery_options
from chaos.checks.run.busy_machine import cpu_starvation
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan

NAME = "recovery"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge each phase, the total, and the steps that were trained again.

    A phase of a mechanism that cannot be measured is unknown, with or without a budget. So is a phase with a budget of
    the restart of a job; its other phases are left out of the verdict where nothing shows them, and listed as such.

    A budget is unknown, too, when it is missed or kept by less than the error of two hosts' clocks, or missed by no
    more than the time for which the machine kept the job or the harness waiting for a processor.
    """
    collector = Collector(NAME)
    recovery = measure(plan, history, artifacts)
    for phase in (*recovery.phases, *recovery.whole):
        if not is_left_out(plan, phase):
            _judge(plan, history, phase, budget_of(plan, phase), collector)
    _judge_rollback(plan, history, collector)
    judge_recovery_options(plan, history, artifacts, collector)
    judge_pace(plan, history, artifacts, collector)
    judge_longest_step(plan, history, artifacts, collector)
    return collector.findings()


def _judge(plan: Plan, history: History, phase: Phase, budget: float | None, collector: Collector) -> None:
    line = _line(plan, phase.name)
    what = f"{phase.name}{_of_which(plan)}"
    expected = f"{what} is measured" if budget is None else f"{what} ≤ {budget:g} s"
    data = about(phase=phase.name, quantity="duration", expected=budget, seen=phase.seconds, unit="s")
    if phase.nanoseconds is None:
        collector.unknown(expected, phase.reason, line, data=data)
        collector.close()
        return
    observation = f"{seconds(phase.nanoseconds)}{f' ± {seconds(phase.error)}' if phase.error else ''}"
    if budget is not None and phase.error and abs(phase.nanoseconds - budget * 1e9) <= phase.error:
        collector.unknown(
            expected,
            f"{observation}: the clocks of two hosts do not show on which side it is",
            line,
            *phase.where,
            data=data,
        )
    elif budget is not None and phase.nanoseconds > budget * 1e9:
        over, window = phase.nanoseconds - round(budget * 1e9), (phase.begin, phase.begin + phase.nanoseconds)
        waited = cpu_starvation(plan, history, *window)
        if waited is not None and waited.nanoseconds >= over:
            collector.unknown(expected, f"{observation}, but {waited}", line, *phase.where, waited.where, data=data)
        else:
            collector.fail(expected, observation, line, *phase.where, data=data)
    collector.settle(expected, observation, line, *phase.where, by_log=phase.by_log, data=data)


def _judge_rollback(plan: Plan, history: History, collector: Collector) -> None:
    """Judge the number of steps that were trained again, where it has a budget."""
    budget = plan.response.budget.rollback
    if budget is None:
        return
    measured, line = rollback(plan, history), _line(plan, "rollback")
    expected = f"steps trained again ≤ {budget}"
    data = about(phase="rollback", quantity="steps trained again", expected=budget, seen=measured.value)
    if measured.value is None:
        collector.unknown(expected, measured.reason, line, data=data)
    elif measured.value > budget:
        collector.fail(expected, f"{measured.value:g}", line, data=data)
    elif measured.reason:
        collector.unknown(expected, f"{measured.value:g} at least: {measured.reason}", line, data=data)
    collector.settle(expected, "unknown" if measured.value is None else f"{measured.value:g}", line, data=data)


def _of_which(plan: Plan) -> str:
    return f" of the last of {len(plan.response.goes_on)} recoveries" if len(plan.response.goes_on) > 1 else ""


def _line(plan: Plan, name: str) -> str:
    return line_of(plan, f"recovery.{name}", f"recovery.phases.{name}", "recovery")


def seconds(nanoseconds: int) -> str:
    """Return a time in words: ``2.040 s``.

    It has three digits after the point, and more where the value exceeds the rounded number.
    """
    text = f"{nanoseconds / 1e9:.3f}"
    return f"{text} s" if round(float(text) * 1e9) >= nanoseconds else f"{nanoseconds / 1e9:.9f}".rstrip("0") + " s"
