"""Part of check ``recovery``: no step after the last recovery takes far longer than its first one may.

A job may come back, hang in a single step until something lets it go on, and be as fast as before in all other steps.
The limit is the budget of the phase ``first step``, and twice the longest step that the job makes without a fault
besides. With a fault-free run the time from the end of one step to that of the next counts, so that a job that hangs
in its data or in a save is seen; a long evaluation or save is in the fault-free run, too.
"""

from __future__ import annotations

from chaos.checks.recovery.pace import FACTOR, slowed
from chaos.checks.recovery.step_times import Step, steps, steps_afterwards, steps_of_baseline
from chaos.checks.run.busy_machine import cpu_starvation
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, step_of
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan

PHASE = "first step"


def judge_longest_step(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge every step after the last recovery but the first, which a phase judges. Says nothing of good ones.

    Nothing is judged without that budget, or where a fault makes steps slower itself.
    """
    budget = plan.response.budget.phases.get(PHASE)
    acts = [event.mono for event in history.select("fault.injecting")]
    if budget is None or not acts or slowed(plan) or not (plan.response.goes_on or plan.resume.resumes):
        return
    before = [step for step in steps(history, TRAIN) if step.end.mono < min(acts)]
    baseline = None if artifacts.baseline is None else list(steps_of_baseline(artifacts.baseline))

    def time_of(step: Step) -> int:
        return step.taken if baseline is None else step.with_gap

    usual = max(map(time_of, [*before, *(baseline or ())]), default=0)
    longest = max(steps_afterwards(plan, history, max(acts)), key=time_of, default=None)
    limit = round(budget * 1e9 + FACTOR * usual)
    if longest is None or time_of(longest) <= limit:
        return
    seconds, most, number = time_of(longest) / 1e9, limit / 1e9, step_of(longest.begin)
    expected = f"no step after the recovery takes longer than {most:.3f} s"
    since = "" if baseline is None else f" from the end of step {step_of(longest.before)} on"
    text = f"step {number} of rank {longest.begin.rank} took {seconds:.3f} s{since}"
    where = (line_of(plan, f"recovery.phases.{PHASE}", "recovery"), longest.before.source, longest.end.source)
    data = about(longest.begin.rank, step=number, quantity="step time", expected=most, seen=seconds, unit="s")
    waited = cpu_starvation(plan, history, longest.end.mono - time_of(longest), longest.end.mono)
    if waited is not None and waited.nanoseconds >= time_of(longest) - limit:
        collector.unknown(expected, f"{text}, but {waited}", *where, waited.where, data=data)
    else:
        collector.fail(expected, text, *where, data=data)
    collector.close()
