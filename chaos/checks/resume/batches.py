"""Part of check ``resume``: every step that counts was trained with the batch of the fault-free run, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from chaos.evidence.baseline import Baseline, at_baseline
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, digests
from chaos.evidence.statement_data import about
from chaos.faults.values.proof import other_batches
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

EXPECTED = "every step trains the batch of the fault-free run: none skipped, none trained twice"


def kept(history: History, saved: int | None) -> Iterator[tuple[int, int, Event]]:
    """Yield rank, step and digest of the training that counts: up to the saved step, and from the resume on.

    Steps that the faulted launch trained after the saved one were lost and trained again.
    """
    for attempt in (TRAIN, RESUME):
        for rank, by_step in digests(history, attempt).items():
            for step, event in sorted(by_step.items()):
                if attempt == RESUME or saved is None or step <= saved:
                    yield rank, step, event


def judge_batches(plan: Plan, history: History, baseline: Baseline, saved: int | None, collector: Collector) -> None:
    """Judge the batch of every step that counts, in a job that is resumed or goes through in one launch."""
    counted = RESUME if plan.resume.resumes else TRAIN
    after = " after the resume" if plan.resume.resumes else ""
    compared = compare_batches(plan, history, baseline, saved, lambda event: event.attempt == counted, collector)
    if compared is None:
        return
    recorded = digests(history, counted)
    missing = {rank: _asked(plan, baseline, rank, saved) - recorded.get(rank, {}).keys() for rank in compared}
    judge_lacking(compared, missing, after, collector)
    before = ", and those before the fault," if plan.resume.resumes else ""
    collector.settle(EXPECTED, f"{sum(compared.values())} batches{after}{before} are equal")


def compare_batches(
    plan: Plan,
    history: History,
    baseline: Baseline,
    saved: int | None,
    counts: Callable[[Event], bool],
    collector: Collector,
) -> dict[int, int] | None:
    """Compare the batches of the steps that count with the fault-free run, and report the first wrong one of each rank.

    Return the number of compared trainings of each rank for which ``counts`` is true; None without a fault-free run.
    """
    if not baseline.is_requested:
        return None
    if baseline.objection is not None:
        reason, where = baseline.objection
        collector.unknown(EXPECTED, f"cannot be compared: {reason}", *where)
        collector.close()
        return None
    compared: dict[int, int] = dict.fromkeys(range(plan.layout.ranks), 0)
    wrong: set[int] = set()
    planned = other_batches(plan)
    for rank, step, ours in kept(history, saved):
        other = baseline.digests.get(rank, {}).get(step)
        if other is None or other.data.get("batch") is None:
            _doubt_baseline(baseline, rank, other, collector)
            continue
        if ours.data.get("batch") is None:
            observation = f"the batch of rank {rank} at step {step} was not recorded"
            collector.unknown(EXPECTED, observation, ours.source, data=about(rank, step=step))
            continue
        compared[rank] = compared.get(rank, 0) + counts(ours)
        if ours.data["batch"] != other.data["batch"] and rank not in wrong and (rank, step) not in planned:
            wrong.add(rank)
            collector.fail(
                EXPECTED,
                _shift(baseline, rank, step, ours),
                ours.source,
                at_baseline(other),
                data=about(rank, step=step, quantity="batch", expected=other.data["batch"], seen=ours.data["batch"]),
            )
    return compared


def judge_lacking(
    compared: Mapping[int, int], missing: Mapping[int, AbstractSet[int]], after: str, collector: Collector
) -> None:
    """Judge that every rank has batches ``after`` the fault that can be compared, and that none is ``missing``."""
    for rank, count in compared.items():
        if not count:
            collector.unknown(EXPECTED, f"no batch of rank {rank}{after} can be compared", data=about(rank))
        elif missing[rank]:
            step = min(missing[rank])
            observation = f"no batch of rank {rank} at step {step} was recorded"
            collector.unknown(EXPECTED, observation, data=about(rank, step=step))


def _asked(plan: Plan, baseline: Baseline, rank: int, saved: int | None) -> set[int]:
    """Return the steps of the launch that reaches the last one, limited to steps with a batch in the fault-free run."""
    first = 0 if not plan.resume.resumes else plan.training.last_step if saved is None else saved
    return {step for step, event in baseline.digests.get(rank, {}).items() if step > first and event.data.get("batch")}


def _doubt_baseline(baseline: Baseline, rank: int, other: Event | None, collector: Collector) -> None:
    """Say that the baseline lacks the batch of a step, although it has recorded other batches of the rank."""
    if other is not None and any(event.data.get("batch") for event in baseline.digests.get(rank, {}).values()):
        observation = f"the baseline has recorded no batch of rank {rank} at step {other.data.get('step')}"
        collector.unknown(EXPECTED, observation, at_baseline(other), data=about(rank, step=other.data.get("step")))


def _shift(baseline: Baseline, rank: int, step: int, ours: Event) -> str:
    """Return the first wrong batch of a rank, and its place in the fault-free run."""
    observation = f"rank {rank} trained another batch at step {step}"
    nearest = sorted(baseline.digests.get(rank, {}).items(), key=lambda item: abs(item[0] - step))
    for other_step, other in nearest:
        if other.data.get("batch") == ours.data["batch"]:
            effect = "trained twice" if other_step < step else "skipped"
            return f"{observation}: the baseline's batch of step {other_step}, so a batch was {effect}"
    return f"{observation}, which the baseline never trained on this rank"
