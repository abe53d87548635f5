"""Part of check ``resume``: after a recovery within the launch every rank goes on from the common step.

The steps begun after the common step are trained again. The last training of a step counts.
"""

from __future__ import annotations

from itertools import pairwise

from chaos.checks.loss import by_log
from chaos.checks.resume.damage_met import judge_met_within
from chaos.checks.resume.replayed import judge_states
from chaos.checks.resume.replayed_batches import judge_replayed_batches
from chaos.checks.resume.sequences import fail_reach
from chaos.checks.resume.training_parts import events_of, parts_of, parts_that_count
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, by_rank, places, step_of
from chaos.evidence.logged import Logged
from chaos.evidence.recovery_windows import Ambiguous, Window, recovery_windows, replayed_windows, trains_to_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

ONCE = "every rank trains each step once and in order, except steps after the common step of a recovery"


def judge_replay(
    plan: Plan, history: History, artifacts: Artifacts, baseline: Baseline, logs: Logged, collector: Collector
) -> None:
    """Judge steps, states and batches of every rank from the first recovery on."""
    try:
        everything, planned = recovery_windows(plan, history), replayed_windows(plan, history)
    except Ambiguous as reason:
        collector.unknown(ONCE, str(reason), _line(plan))
        collector.close()
        return
    parts = {rank: parts_that_count(rank_parts, planned, rank) for rank, rank_parts in parts_of(plan, history).items()}
    ends = by_rank(history, "step.end", TRAIN)
    to_the_end = trains_to_the_end(plan)
    for rank, rank_parts in parts.items():
        if rank in logs.ranks:
            by_log.judge_sequence(logs.ranks[rank], TRAIN, tuple(window.step for window in planned), collector)
            if to_the_end:
                by_log.judge_reach(plan, logs.ranks[rank], TRAIN, collector)
            continue
        if _is_complete(plan, planned, rank, rank_parts, collector):
            _judge_first(rank, rank_parts[0], collector)
            for window, before, after in zip(planned, rank_parts, rank_parts[1:], strict=False):
                _judge_again(plan, window, rank, before, after, collector)
            for before, after in pairwise(rank_parts):
                _judge_fresh(rank, before, after, collector)
            for number, part in enumerate(rank_parts):
                _judge_order(rank, part, collector, last=to_the_end and number == len(planned))
        if to_the_end:
            _judge_last(plan, history, rank, ends.get(rank, []), collector)
    steps = ", ".join(str(window.step) for window in planned)
    collector.settle(
        ONCE,
        f"{plan.layout.ranks} ranks " + (f"went on from step {steps}" if steps else "did"),
        _line(plan),
    )
    _judge_loads(history, everything, collector)
    judge_met_within(plan, history, artifacts, planned, collector)
    judge_states(plan, history, baseline, planned, parts, collector)
    judge_replayed_batches(plan, history, baseline, planned, collector)


def _line(plan: Plan) -> str:
    return line_of(plan, "mechanism")


def _is_complete(plan: Plan, planned: list[Window], rank: int, parts: list[list[Event]], collector: Collector) -> bool:
    """Return whether the rank began to train at its start and once after each recovery, so that it can be judged."""
    begins = [part[0] for part in parts]
    again = begins[1:]
    if len(again) > len(planned):
        observation = f"rank {rank} began again {len(again)} times, with {len(planned)} recoveries planned"
        collector.fail(ONCE, observation, _line(plan), *places(again), data=about(rank))
        return False
    if len(again) < len(planned):
        observation = f"rank {rank} has recorded {len(again)} beginnings of training after {len(planned)} recoveries"
        collector.unknown(ONCE, observation, _line(plan), *places(begins), data=about(rank))
        return False
    if not begins:
        collector.unknown(ONCE, f"no beginning of training of rank {rank} is recorded", _line(plan), data=about(rank))
        return False
    for window, begin in zip(planned, again, strict=True):
        if not window.holds(begin):
            observation = f"rank {rank} did not begin again between recovery {window.number} and the next fault"
            collector.fail(ONCE, observation, _line(plan), begin.source, data=about(rank))
            return False
    return True


def _judge_first(rank: int, part: list[Event], collector: Collector) -> None:
    begins = events_of(part, "step.begin")
    if not begins:
        collector.unknown(
            ONCE, f"no step of rank {rank} before the recovery is recorded", part[0].source, data=about(rank)
        )
    elif step_of(begins[0]) != 1:
        collector.fail(
            ONCE,
            f"rank {rank} began with step {step_of(begins[0])}",
            begins[0].source,
            data=about(rank, step=step_of(begins[0])),
        )


def _judge_again(
    plan: Plan, window: Window, rank: int, before: list[Event], after: list[Event], collector: Collector
) -> None:
    expected = f"after recovery {window.number} training goes on at step {window.step + 1}"
    counter = after[0].data.get("initial_step")
    if counter is None:
        collector.unknown(
            expected,
            f"the step counter of rank {rank} is not recorded",
            after[0].source,
            data=about(rank, step=window.step + 1),
        )
    elif counter != window.step:
        observation = f"rank {rank}'s step counter was {counter}, not {window.step}"
        collector.fail(
            expected,
            observation,
            _line(plan),
            after[0].source,
            data=about(rank, step=window.step, quantity="step", expected=window.step, seen=counter),
        )
    begins = events_of(after, "step.begin")
    if not begins:
        collector.unknown(
            expected,
            f"no step of rank {rank} after recovery {window.number} is recorded",
            after[0].source,
            data=about(rank, step=window.step + 1),
        )
    elif step_of(begins[0]) != window.step + 1:
        first = step_of(begins[0])
        wrong = f"step {window.step + 1} was skipped" if first > window.step + 1 else f"step {first} was trained again"
        collector.fail(
            expected,
            f"rank {rank} went on at step {first}: {wrong}",
            _line(plan),
            begins[0].source,
            data=about(rank, step=first, quantity="step", expected=window.step + 1, seen=first),
        )
    ended = [step_of(event) for event in events_of(before, "step.end")]
    # A rank that was hit at the end of the common step has its state from a replica and no end of its own.
    least = window.step - (rank in window.hit)
    if max(ended, default=least if not window.step else 0) < least:
        observation = (
            f"rank {rank} had trained up to step {max(ended, default=0)} when it was recovered at step {window.step}"
        )
        collector.fail(expected, observation, _line(plan), after[0].source, data=about(rank, step=window.step + 1))


def _judge_order(rank: int, part: list[Event], collector: Collector, *, last: bool) -> None:
    """Judge the order between two beginnings: each step follows the one before, is ended, and trains one batch."""
    begins = events_of(part, "step.begin")
    for before, after in pairwise(begins):
        previous, step = step_of(before), step_of(after)
        if step <= previous:
            collector.fail(
                ONCE,
                f"rank {rank} trained step {step} twice (after step {previous})",
                after.source,
                before.source,
                data=about(rank, step=step),
            )
        elif step > previous + 1:
            observation = f"rank {rank} skipped step {previous + 1} (step {step} after step {previous})"
            collector.fail(ONCE, observation, after.source, before.source, data=about(rank, step=previous + 1))
    ended = [step_of(event) for event in events_of(part, "step.end")]
    begun = [step_of(event) for event in begins]
    for begin in begins if last else begins[:-1]:
        if step_of(begin) not in ended:
            collector.fail(
                ONCE,
                f"rank {rank} began step {step_of(begin)} and did not end it",
                begin.source,
                data=about(rank, step=step_of(begin)),
            )
    for end in events_of(part, "step.end"):
        if step_of(end) not in begun or ended.count(step_of(end)) > 1:
            collector.fail(
                ONCE,
                f"rank {rank} ended step {step_of(end)} without beginning it",
                end.source,
                data=about(rank, step=step_of(end)),
            )
    for before, after in pairwise(events_of(part, "digest")):
        if step_of(after) <= step_of(before):
            observation = f"rank {rank} trained a batch of step {step_of(after)} twice"
            collector.fail(ONCE, observation, after.source, before.source, data=about(rank, step=step_of(after)))


def _judge_fresh(rank: int, before: list[Event], after: list[Event], collector: Collector) -> None:
    """Judge that a step trained again has a digest of its own; its first training's digest would stand for it."""
    again = {step_of(event) for event in events_of(before, "digest")} - {
        step_of(event) for event in events_of(after, "digest")
    }
    for end in events_of(after, "step.end"):
        if step_of(end) in again:
            collector.unknown(
                ONCE,
                f"rank {rank} has no digest of step {step_of(end)}, trained again",
                end.source,
                data=about(rank, step=step_of(end)),
            )


def _judge_last(plan: Plan, history: History, rank: int, ends: list[Event], collector: Collector) -> None:
    expected = f"every rank trains to step {plan.training.last_step}"
    if not ends:
        collector.unknown(
            expected, f"no end of a step of rank {rank} is recorded", data=about(rank, step=plan.training.last_step)
        )
    elif step_of(ends[-1]) != plan.training.last_step:
        fail_reach(plan, history, expected, f"rank {rank} stopped after", rank, ends[-1], collector)


def _judge_loads(history: History, planned: list[Window], collector: Collector) -> None:
    """Judge that, from the first fault on, a checkpoint is read only in a recovery that says so, a pause being none."""
    expected = "after the first fault a checkpoint is read only where the plan says so; ranks give the state"
    allowed = 0
    for load in history.select("load.begin", attempt=TRAIN):
        window = next((span for span in planned if span.holds(load)), None)
        if window is not None and any(recovery.reads_checkpoint for recovery in window.all):
            allowed += 1
        elif window is not None:
            collector.fail(
                expected, f"rank {load.rank} read {load.data.get('path')}", load.source, data=about(load.rank)
            )
    collector.settle(expected, f"{allowed} were read where the plan says so" if allowed else "none was")
