"""Check ``loss``: the loss curve, the gradients and the weights go on as if nothing had happened.

Without a tolerance every loss, every weight and all optimizer state equal the fault-free run's bit for bit. With
``expect.loss.tolerance`` a loss may differ by that much, and a parameter whose digest differs is compared by samples:
its norm, its mean, and some values at places that a seed chooses. A difference without samples is unknown, never a
pass.

The limits come from ``chaos calibrate`` (docs/guides/calibrate.md). Each is a bound for the largest difference of two
fault-free runs over all steps, ranks and parameters, with which the check also compares, so the number of comparisons
in a run needs no correction. By default 1 % of sound runs exceed one of the limits. The result states limits and rate.
"""

from __future__ import annotations

import math

from chaos.checks.loss import by_log
from chaos.checks.loss.hyperparameters import judge_hyperparameters
from chaos.checks.loss.mean import judge_mean
from chaos.checks.loss.readable import judge_readable
from chaos.checks.loss.states import judge_states
from chaos.checks.resume.batches import kept
from chaos.checks.scope import trains_nothing
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline, at_baseline, close, loss_of
from chaos.evidence.checkpoints.parameters import is_weight
from chaos.evidence.checkpoints.periodic import resumed_from
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, by_rank, digests, places, step_of
from chaos.evidence.finding import Finding
from chaos.evidence.logged import Logged, logged
from chaos.evidence.recovery_windows import reaches_the_end, trains_to_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import LOSS, about
from chaos.faults.values.proof import may_be_infinite
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

NAME = "loss"
FINITE = "every loss that is recorded is finite"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge losses and parameters against the baseline, and that training really trains."""
    collector = Collector(NAME)
    if trains_nothing(plan) and not history.select("step.end"):
        return []
    saved = resumed_from(plan, history, artifacts) if plan.resume.resumes else None
    baseline = Baseline(plan, history, artifacts)
    events = {(rank, step): event for rank, step, event in kept(history, saved)}
    logs = logged(plan, history, artifacts)
    _judge_finite(plan, history, events, logs, collector)
    if baseline.is_requested:
        _judge_baseline(plan, history, baseline, events, saved, logs, collector)
    last = RESUME if plan.resume.resumes else TRAIN
    if plan.training.gradients:
        _judge_gradients(plan, history, last, collector)
    _judge_movement(plan, history, last, collector)
    judge_readable(history, collector)
    return collector.findings()


def _line(plan: Plan) -> str:
    return line_of(plan, "loss.tolerance", "loss")


def _judge_finite(
    plan: Plan, history: History, events: dict[tuple[int, int], Event], logs: Logged, collector: Collector
) -> None:
    limit = None if plan.equivalence.comparable is None else plan.equivalence.comparable.finite_until
    any_recorded = False
    for event in history.select("digest"):
        loss = loss_of(event)
        if loss is None or not plan.layout.has_loss(event.rank or 0):
            continue
        any_recorded = True
        if math.isfinite(loss) or (limit is not None and step_of(event) > limit):
            continue
        # After a value that was corrupted on purpose nothing is promised, until its step is trained again.
        if events.get((event.rank or 0, step_of(event))) is event or not may_be_infinite(plan, step_of(event)):
            observation = f"rank {event.rank} has loss {loss} at step {step_of(event)} of attempt {event.attempt}"
            collector.fail(
                FINITE, observation, event.source, data=about(event.rank, step=step_of(event), quantity=LOSS, seen=loss)
            )
    by_log.judge_finite(logs, FINITE, collector)
    if not any_recorded and not logs.ranks:
        collector.unknown(FINITE, "no loss was recorded", "history")
    collector.settle(FINITE, f"all are, {logs.precision}" if logs.ranks else "all are", by_log=bool(logs.ranks))


def _judge_baseline(
    plan: Plan,
    history: History,
    baseline: Baseline,
    events: dict[tuple[int, int], Event],
    saved: int | None,
    logs: Logged,
    collector: Collector,
) -> None:
    exact = plan.equivalence.loss_tolerance == 0
    rule = "bit for bit" if exact else f"within {plan.equivalence.loss_tolerance:g} relative"
    expected = f"every loss equals the fault-free run's, {rule}"
    if baseline.objection is not None:
        reason, where = baseline.objection
        collector.unknown(expected, f"cannot be compared: {reason}", _line(plan), *where)
        collector.close()
        return
    if plan.resume.resumes and saved is None:
        collector.unknown(expected, "the saved step is not known, so it is not known which steps count", _line(plan))
    if len(logs.ranks) < plan.layout.ranks:
        _judge_losses(plan, history, baseline, events, saved, collector, expected)
    if logs.ranks:
        collector.close()
        by_log.judge_losses(plan, logs, _line(plan), collector)
    judge_mean(plan, baseline, events, _line(plan), collector)
    judge_states(plan, baseline, events, collector)
    judge_hyperparameters(plan, baseline, events, collector)


def _judge_losses(
    plan: Plan,
    history: History,
    baseline: Baseline,
    events: dict[tuple[int, int], Event],
    saved: int | None,
    collector: Collector,
    expected: str,
) -> None:
    recorded = _recorded_before(history)
    outdated = plan.equivalence.outdated_by
    tolerance, report = (0.0, collector.unknown) if outdated else (plan.equivalence.loss_tolerance, collector.fail)
    compared = 0
    silent: dict[int, Event] = {}
    for rank in filter(plan.layout.has_loss, range(plan.layout.ranks)):
        wrong = False
        for step, other in sorted(baseline.digests.get(rank, {}).items()):
            if plan.equivalence.comparable is not None and step > plan.equivalence.comparable.losses_until:
                break
            ours = events.get((rank, step))
            value, theirs = (loss_of(ours) if ours is not None else None), loss_of(other)
            before = not plan.resume.resumes or (saved is not None and step <= saved)
            if before and ours is None and step not in recorded.get(rank, ()):
                continue
            if value is None and theirs is None and ours is not None:
                silent.setdefault(rank, ours)
                continue
            if ours is None or value is None:
                collector.unknown(
                    expected,
                    f"no loss of rank {rank} at step {step}",
                    _line(plan),
                    at_baseline(other),
                    data=about(rank, step=step),
                )
            elif theirs is None:
                observation = f"the baseline has no loss of rank {rank} at step {step}"
                collector.unknown(expected, observation, _line(plan), at_baseline(other), data=about(rank, step=step))
            else:
                compared += 1
                if not wrong and not close(value, theirs, tolerance):
                    wrong = True
                    observation = f"first at rank {rank}, step {step}: {_compared(value, theirs)}{_because(plan)}"
                    places = (_line(plan), ours.source, at_baseline(other))
                    data = about(rank, step=step, quantity=LOSS, expected=theirs, seen=value)
                    report(expected, observation, *places, data=data)
    if not compared:
        collector.unknown(expected, "not one loss can be compared", _line(plan))
    comparable = {
        rank
        for rank, _ in events
        if any(loss_of(event) is not None for event in baseline.digests.get(rank, {}).values())
    }
    for rank, ours in silent.items():
        if comparable.isdisjoint(next((group for group in plan.layout.replica_groups if rank in group), (rank,))):
            continue  # This rank has no loss, like any rank outside the last pipeline stage.
        observation = f"no loss of rank {rank} at step {ours.data.get('step')}, here or in the baseline"
        collector.unknown(expected, observation, _line(plan), ours.source, data=about(rank, step=ours.data.get("step")))
    ranks = sum(map(plan.layout.has_loss, range(plan.layout.ranks)))
    collector.settle(expected, f"{compared} losses on {ranks} ranks do", _line(plan))


def _recorded_before(history: History) -> dict[int, set[int]]:
    """Return the steps of the faulted launch that each rank must have recorded.

    These are the steps that it ended, without the last one before it was killed: the digest comes after the end.
    """
    killed = {
        event.rank for event in history.select("rank.exit", attempt=TRAIN) if event.data.get("signal") is not None
    }
    ended = {rank: {step_of(event) for event in ends} for rank, ends in by_rank(history, "step.end", TRAIN).items()}
    return {rank: steps - {max(steps)} if rank in killed else steps for rank, steps in ended.items()}


def _because(plan: Plan) -> str:
    """Return why a difference does not fail, where no tolerance holds; else nothing."""
    return f"; {why}" if (why := plan.equivalence.why_outdated) else ""


def _compared(ours: float, theirs: float) -> str:
    relative = f", {abs(ours - theirs) / abs(theirs):.2e} relative" if theirs and math.isfinite(ours) else ""
    return f"loss {ours!r} ({ours.hex()}), baseline {theirs!r} ({theirs.hex()}){relative}"


def _judge_gradients(plan: Plan, history: History, attempt: str, collector: Collector) -> None:
    expected = "gradients are finite and not zero"
    recorded = digests(history, attempt)
    # The last step always has a digest; a norm from before the fault says nothing about later ones.
    last = plan.training.last_step if plan.resume.resumes or reaches_the_end(plan) else None
    limit = None if plan.equivalence.comparable is None else plan.equivalence.comparable.finite_gradients_until
    for rank in range(plan.layout.ranks):
        with_gradients = {
            step: event for step, event in sorted(recorded.get(rank, {}).items()) if event.data.get("gradients")
        }
        for step, event in with_gradients.items():
            norm = float.fromhex(str(event.data["gradients"]["norm"]))
            if (limit is None or step <= limit) and (not math.isfinite(norm) or norm <= 0):
                collector.fail(
                    expected,
                    f"the norm is {norm} on rank {rank} at step {step}",
                    event.source,
                    data=about(rank, step=step, quantity="norm", seen=norm),
                )
        if not with_gradients:
            collector.unknown(
                expected, f"no gradients of rank {rank} were recorded in attempt {attempt}", data=about(rank)
            )
        elif last not in (None, *with_gradients):
            observation = f"no gradients of rank {rank} were recorded at step {last}, the last of attempt {attempt}"
            collector.unknown(
                expected, observation, *places(list(with_gradients.values())[-1:]), data=about(rank, step=last)
            )
    collector.settle(expected, "on all ranks")


def _judge_movement(plan: Plan, history: History, attempt: str, collector: Collector) -> None:
    expected = "training moves the weights"
    recorded = digests(history, attempt)
    for rank in range(plan.layout.ranks):
        # After a recovery within the launch it must move them again.
        find = history.last if trains_to_the_end(plan) else history.first
        initial = find("initial", attempt=attempt, rank=rank)
        states = [
            event
            for _, event in sorted(recorded.get(rank, {}).items())
            if event.data.get("parameters") and (initial is None or event.mono > initial.mono)
        ]
        if initial is not None:
            states.insert(0, initial)
        if len(states) < 2:
            collector.unknown(
                expected, f"fewer than two states of rank {rank} were recorded in attempt {attempt}", data=about(rank)
            )
            continue
        first, last = (
            {n: d for n, d in event.data["parameters"].items() if is_weight(n)} for event in (states[0], states[-1])
        )
        if not first or not last:
            collector.unknown(expected, f"no weights of rank {rank} were recorded", states[0].source, data=about(rank))
        elif first == last:
            observation = f"no weight of rank {rank} has changed up to step {states[-1].data.get('step')}"
            collector.fail(
                expected,
                observation,
                states[0].source,
                states[-1].source,
                data=about(rank, step=states[-1].data.get("step")),
            )
    collector.settle(expected, "on all ranks")
