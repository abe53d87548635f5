"""Part of check ``resume``: each launch trains every step once and in order, and the last one reaches the last step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from chaos.checks.loss import by_log
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, by_rank, places, step_of, stopped_by_harness
from chaos.evidence.logged import Logged
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "each launch trains every step once and in order"


def judge_sequences(plan: Plan, history: History, logs: Logged, attempts: Sequence[str], collector: Collector) -> None:
    """Judge that each launch begins and ends every step once, in order, and that the last launch reaches the end."""
    for attempt in attempts:
        for event in ("step.begin", "step.end"):
            sequences = by_rank(history, event, attempt)
            for rank, events in sequences.items():
                _judge_order(plan, rank, events, attempt, collector)
            if attempt == TRAIN and event == "step.begin":
                _judge_start(plan, sequences, logs, collector)
        _judge_pairs(history, attempt, collector)
        for log in logs.ranks.values():
            by_log.judge_sequence(log, attempt, (), collector)
    _judge_reach(plan, history, logs, attempts[-1], collector)
    by_logs = f", {len(logs.ranks)} of them by their logs" if logs.ranks else ""
    observation = f"steps up to {plan.training.last_step} on {plan.layout.ranks} ranks{by_logs}"
    collector.settle(EXPECTED, observation, by_log=bool(logs.ranks))


def _judge_order(plan: Plan, rank: int, events: list[Event], attempt: str, collector: Collector) -> None:
    stride = _stride(plan, events)
    for before, after in pairwise(events):
        previous, step = step_of(before), step_of(after)
        if step <= previous:
            observation = f"rank {rank} trained step {step} twice in attempt {attempt} (after step {previous})"
            collector.fail(EXPECTED, observation, after.source, before.source, data=about(rank, step=step))
        elif step - previous != stride:
            observation = (
                f"rank {rank} skipped step {previous + 1} in attempt {attempt} (step {step} after step {previous})"
            )
            collector.fail(EXPECTED, observation, after.source, before.source, data=about(rank, step=previous + 1))


def _stride(plan: Plan, events: Sequence[Event]) -> int:
    """Return the distance between a rank's recorded steps.

    A sink of several steps counts as one, where the data is sunk at all.

    A rank with a step that ends no sink had its steps recorded one by one, so it has skipped the missing ones.
    """
    return 1 if any(step_of(event) % plan.training.sink_size for event in events) else plan.training.sink_size


def _judge_pairs(history: History, attempt: str, collector: Collector) -> None:
    """Judge that a step is ended before the next one begins, and that its batch is trained once."""
    ends = by_rank(history, "step.end", attempt)
    for rank, begins in by_rank(history, "step.begin", attempt).items():
        ended = {step_of(event) for event in ends.get(rank, [])}
        for begin in begins[:-1]:
            if step_of(begin) not in ended:
                observation = f"rank {rank} began step {step_of(begin)} in attempt {attempt} and did not end it"
                collector.fail(EXPECTED, observation, begin.source, data=about(rank, step=step_of(begin)))
    for rank, trained in by_rank(history, "digest", attempt).items():
        for before, after in pairwise(trained):
            if step_of(after) <= step_of(before):
                observation = f"rank {rank} trained a batch of step {step_of(after)} twice in attempt {attempt}"
                collector.fail(
                    EXPECTED, observation, after.source, before.source, data=about(rank, step=step_of(after))
                )


def _judge_start(plan: Plan, begins: dict[int, list[Event]], logs: Logged, collector: Collector) -> None:
    for rank in range(plan.layout.ranks):
        events = begins.get(rank, [])
        if rank in logs.ranks:
            continue
        if not events:
            collector.unknown(EXPECTED, f"no step of rank {rank} in attempt {TRAIN} is recorded", data=about(rank))
        elif step_of(events[0]) != _stride(plan, events):
            collector.fail(
                EXPECTED,
                f"rank {rank} began with step {step_of(events[0])}",
                events[0].source,
                data=about(rank, step=step_of(events[0])),
            )


def _judge_reach(plan: Plan, history: History, logs: Logged, attempt: str, collector: Collector) -> None:
    expected = f"every rank trains to step {plan.training.last_step}"
    begins, ends = by_rank(history, "step.begin", attempt), by_rank(history, "step.end", attempt)
    for rank in range(plan.layout.ranks):
        if rank in logs.ranks:
            by_log.judge_reach(plan, logs.ranks[rank], attempt, collector)
            continue
        ended, begun = ends.get(rank, []), begins.get(rank, [])
        if rank in logs.unseen:
            collector.unknown(
                expected,
                f"neither a record nor a log shows a step of rank {rank}, in any launch",
                data=about(rank, step=plan.training.last_step),
            )
        elif not ended and attempt == RESUME:
            collector.fail(
                expected,
                f"rank {rank} ended no step",
                data=about(rank, quantity="step", expected=plan.training.last_step),
            )
        elif not ended:
            collector.unknown(
                expected,
                f"no end of a step of rank {rank} in attempt {attempt} is recorded",
                data=about(rank, step=plan.training.last_step),
            )
        elif step_of(ended[-1]) != plan.training.last_step:
            fail_reach(plan, history, expected, f"rank {rank} stopped after", rank, ended[-1], collector)
        elif begun and step_of(begun[-1]) > plan.training.last_step:
            fail_reach(plan, history, expected, f"rank {rank} began", rank, begun[-1], collector)


def fail_reach(
    plan: Plan, history: History, expected: str, what: str, rank: int, event: Event, collector: Collector
) -> None:
    """Report the last step of a rank that is not the job's last one. A deadline that stopped the rank comes first."""
    step = step_of(event)
    data = about(rank, step=step, quantity="step", expected=plan.training.last_step, seen=step)
    where = places([*stopped_by_harness(history, event), event])
    collector.fail(expected, f"{what} step {step}", *where, data=data)
