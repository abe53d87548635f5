"""Statements about losses and steps of ranks that only their logs report.

A missing line proves nothing, since a log loses the unwritten output of a killed process: the verdict is unknown. An
existing line is evidence, as exact as it is printed.
"""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, text_list
from chaos.evidence.logged import Difference, Launch, Logged, RankLog
from chaos.evidence.statement_data import LOSS, about
from chaos.plan.model import Plan

AGREE = "ranks of one replica group that print the same losses without a fault print the same losses with it"


def judge_finite(logs: Logged, expected: str, collector: Collector) -> None:
    """Judge that every printed loss is a number."""
    for log in logs.ranks.values():
        for line in log.infinite:
            collector.fail(
                expected,
                f"rank {log.rank} prints loss {line} at step {line.step}",
                line.where,
                data=about(log.rank, step=line.step, quantity=LOSS, seen=str(line)),
            )


def judge_losses(plan: Plan, logs: Logged, line: str, collector: Collector) -> None:
    """Judge that every loss that counts is printed like the fault-free run's.

    The comparison itself is well-posed.
    """
    tolerance = plan.equivalence.loss_tolerance
    rule = "as printed" if tolerance == 0 else f"within {tolerance:g} relative, as printed"
    expected = f"every loss in the ranks' logs equals the fault-free run's, {rule}"
    compared = 0
    for log in logs.ranks.values():
        compared += log.compared
        difference = log.early or log.late
        if difference is not None:
            observation = f"first at rank {log.rank}, step {difference.ours.step}: {_compared(difference)}"
            places = (line, difference.ours.where, difference.theirs.where)
            data = about(
                log.rank,
                step=difference.ours.step,
                quantity=LOSS,
                expected=str(difference.theirs),
                seen=str(difference.ours),
            )
            if why := plan.equivalence.why_outdated:
                collector.unknown(expected, f"{observation}; {why}", *places, data=data)
            else:
                collector.fail(expected, observation, *places, data=data)
        _judge_missing(log, expected, line, collector)
    if not compared:
        collector.unknown(expected, "not one loss can be compared", line)
    collector.settle(
        expected, f"{compared} losses of {len(logs.ranks)} ranks are equal, {logs.precision}", line, by_log=True
    )


def judge_agreement(logs: Logged, collector: Collector) -> None:
    """Judge that ranks with the same state print the same, where they did before."""
    for rank, other, difference in logs.apart:
        observation = (
            f"ranks {other} and {rank} print {difference.theirs} and {difference.ours} at step {difference.ours.step}"
        )
        collector.fail(
            AGREE,
            observation,
            difference.theirs.where,
            difference.ours.where,
            data=about(
                (other, rank),
                step=difference.ours.step,
                quantity="printed loss",
                expected=str(difference.theirs),
                seen=str(difference.ours),
            ),
        )
    if logs.apart or logs.agreeing:
        collector.settle(AGREE, f"{logs.agreeing} comparisons, all equal, {logs.precision}", by_log=True)


def judge_first(log: RankLog, saved: int, expected: str, line: str, collector: Collector) -> None:
    """Judge that the resumed launch first prints the step after the saved one."""
    first = _launch(log, RESUME).first
    if first is None:
        collector.unknown(
            expected, f"the log of rank {log.rank} has no step after the resume", line, data=about(log.rank)
        )
    elif first.step <= saved:
        collector.fail(
            expected,
            f"rank {log.rank} began with step {first.step}",
            line,
            first.where,
            data=about(log.rank, step=first.step),
        )
    elif first.step > saved + 1 and log.missing_count:
        observation = f"the first step in the log of rank {log.rank} is {first.step}"
        collector.unknown(expected, observation, line, first.where, data=about(log.rank))


def judge_sequence(log: RankLog, attempt: str, goals: tuple[int, ...], collector: Collector) -> None:
    """Judge that no step is printed twice in a launch, except after a recovery that goes back to one of ``goals``.

    The goals are taken in their order.
    """
    expected = sequence_text(attempt)
    launch = _launch(log, attempt)
    left = list(goals)
    for before, after in launch.returns:
        while left and left[0] + 1 != after.step:
            del left[0]
        if left:
            del left[0]
        else:
            observation = f"rank {log.rank} trained step {after.step} again (after step {before.step})"
            collector.fail(expected, observation, after.where, before.where, data=about(log.rank, step=after.step))
    if launch.first is None:
        collector.unknown(
            expected, f"the log of rank {log.rank} has no step of attempt {attempt}", data=about(log.rank)
        )
    elif attempt == TRAIN and launch.first.step != 1 and log.missing_count:
        observation = f"the first step in the log of rank {log.rank} is {launch.first.step}"
        collector.unknown(expected, observation, launch.first.where, data=about(log.rank))


def judge_reach(plan: Plan, log: RankLog, attempt: str, collector: Collector) -> None:
    """Judge that the launch prints the last step of the training."""
    last = _launch(log, attempt).last
    goal = f"every rank trains to step {plan.training.last_step}"
    if last is None:
        collector.unknown(
            goal,
            f"the log of rank {log.rank} has no step of attempt {attempt}",
            data=about(log.rank, step=plan.training.last_step),
        )
    elif last.step > plan.training.last_step:
        collector.fail(
            goal,
            f"rank {log.rank} trained step {last.step}",
            last.where,
            data=about(log.rank, step=last.step, quantity="step", expected=plan.training.last_step, seen=last.step),
        )
    elif last.step < plan.training.last_step and (log.missing_count or last.step < log.baseline_last):
        collector.unknown(
            goal,
            f"the log of rank {log.rank} ends with step {last.step}",
            last.where,
            data=about(log.rank, step=plan.training.last_step),
        )
    _judge_missing(log, goal, "", collector)


def sequence_text(attempt: str) -> str:
    """Return the expectation of :func:`judge_sequence`."""
    return f"by its log each rank trains every step of attempt {attempt} once, or again only after a recovery"


def _judge_missing(log: RankLog, expected: str, line: str, collector: Collector) -> None:
    if log.missing_count:
        steps = text_list((*log.missing[:3], *["…"] * (log.missing_count > 3)))
        observation = f"no loss in the log of rank {log.rank}, or in that of the baseline, for step {steps}"
        collector.unknown(
            expected, f"{observation} ({log.missing_count} in all)", line, data=about(log.rank, step=log.missing[0])
        )


def _launch(log: RankLog, attempt: str) -> Launch:
    return log.launches.get(attempt, Launch(0, None, None, ()))


def _compared(difference: Difference) -> str:
    return f"loss {difference.ours}, baseline {difference.theirs}, as printed"
