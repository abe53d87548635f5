"""Part of check ``resume``: each rank's state after a recovery within the launch is the state after the common step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from chaos.evidence.baseline import Baseline, at_baseline, differing, origin
from chaos.evidence.checkpoints.parameters import is_replicated
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, text_list
from chaos.evidence.recovery_windows import Window
from chaos.evidence.statement_data import STATE, about
from chaos.evidence.tolerances.agreement import Agreement, agreement
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

RESTORED = "each rank goes on with the weights and optimizer state of the common step"


def judge_states(
    plan: Plan,
    history: History,
    baseline: Baseline,
    planned: list[Window],
    parts: dict[int, list[list[Event]]],
    collector: Collector,
) -> None:
    """Judge the state of every rank before its first step after each span.

    It is compared with the fault-free run's state; where the plan wants no baseline, or has a tolerance, with the
    record of the rank or of a replica. ``parts`` holds each rank's events from one beginning of training up to the
    next.
    """
    if baseline.is_requested and baseline.objection is not None:
        reason, where = baseline.objection
        collector.unknown(RESTORED, f"cannot be compared: {reason}", *where)
        collector.close()
        return
    compared, count = 0, len(planned)
    for number, window in enumerate(planned, 1):
        for rank, rank_parts in parts.items():
            part = rank_parts[number] if len(rank_parts) == count + 1 else []
            initial = next((event for event in part if event.event == "initial"), None)
            if initial is None:
                collector.unknown(
                    RESTORED, f"no digests of rank {rank} after recovery {window.number}", data=about(rank)
                )
                continue
            compared += _judge_state(plan, history, baseline, window, rank, initial, collector)
    if planned:  # after a pause every rank goes on with its own state
        collector.settle(RESTORED, f"{compared} states do, by digest")


def _judge_state(
    plan: Plan, history: History, baseline: Baseline, window: Window, rank: int, initial: Event, collector: Collector
) -> int:
    ours = initial.data.get("parameters")
    good = plan.equivalence.comparable is None or window.step <= plan.equivalence.comparable.until
    by_baseline = baseline.is_requested and good and window.recovery is not None and window.recovery.as_fault_free
    of_baseline = _of_baseline(baseline, rank, window.step) if by_baseline else iter(())
    if by_baseline and plan.equivalence.exact:
        sources = of_baseline
    else:  # the record of the same run has no noise
        sources = chain(_of_group(plan, history, window, rank, initial), of_baseline)
    source = next((candidate for candidate in sources if candidate[0]), None)
    if not isinstance(ours, dict) or not ours or source is None:
        observation = f"nothing to compare the state of rank {rank} after recovery {window.number} with"
        collector.unknown(RESTORED, observation, initial.source, data=about(rank))
        return 0
    theirs, where, event = source
    of_this_run = where == event.source
    if of_this_run:
        ours = {name: digest for name, digest in ours.items() if is_replicated(name)}
    names = differing(ours, theirs)
    if by_baseline and not of_this_run:
        names = without_statistics_of_others(plan, baseline, window, rank, ours, names)
    agreed = Agreement("fail")
    if not (of_this_run or plan.equivalence.exact):
        agreed = agreement(plan, names, initial, event)
    if not names or agreed.verdict == "pass":
        return 1
    observation = f"after recovery {window.number} rank {rank} held another state than that of step {window.step}"
    observation = (
        f"{observation}: {len(names)} differ: {text_list(names)}{origin(baseline, rank, names[0], ours, window.step)}"
    )
    if agreed.text:
        observation = f"{observation}; {agreed.text}"
    if agreed.verdict == "unknown":
        collector.unknown(
            RESTORED,
            observation,
            initial.source,
            where,
            data=about(rank, step=window.step, parameters=names, compared=len(ours)),
        )
    else:
        collector.fail(
            RESTORED,
            observation,
            initial.source,
            where,
            data=about(
                rank,
                step=window.step,
                parameters=names,
                compared=len(ours),
                quantity=STATE,
                expected=theirs.get(names[0]),
                seen=ours.get(names[0]),
            ),
        )
    return 1


def without_statistics_of_others(
    plan: Plan, baseline: Baseline, window: Window, rank: int, ours: Mapping[str, str], names: list[str]
) -> list[str]:
    """Return the differing parameters but the running statistics that another rank of the replica group held then.

    A rank that reads the checkpoint of another rank gets that rank's statistics: those of the data that it has seen.
    """
    if window.recovery is None or not window.recovery.reads_checkpoint:
        return names
    group = next((group for group in plan.layout.replica_groups if rank in group), (rank,))
    records = (baseline.digests.get(peer, {}).get(window.step) for peer in group)
    held = [record.data.get("parameters") or {} for record in records if record is not None]
    return [name for name in names if is_replicated(name) or all(ours.get(name) != peer.get(name) for peer in held)]


def _of_baseline(baseline: Baseline, rank: int, step: int) -> Iterator[tuple[dict[str, str], str, Event]]:
    """Yield the fault-free run's state after ``step``; its initial state for step 0."""
    history = baseline.artifacts.baseline
    other = baseline.digests.get(rank, {}).get(step)
    if not step and history is not None:
        other = history.first("initial", attempt=TRAIN, rank=rank)
    if other is not None:
        yield other.data.get("parameters") or {}, at_baseline(other), other


def _of_group(
    plan: Plan, history: History, window: Window, rank: int, initial: Event
) -> Iterator[tuple[dict[str, str], str, Event]]:
    """Yield the record of the state after the common step: the rank's, or else another rank's of its replica group."""
    group = next((group for group in plan.layout.replica_groups if rank in group), (rank,))
    for peer in sorted(group, key=lambda other: other != rank):
        recorded = history.select("initial", attempt=TRAIN, rank=peer)
        if window.step:
            recorded = history.select("digest", attempt=TRAIN, rank=peer, step=window.step)
        for other in reversed([before for before in recorded if before.mono < min(initial.mono, window.begin)]):
            parameters = other.data.get("parameters") or {}
            yield {name: digest for name, digest in parameters.items() if is_replicated(name)}, other.source, other
