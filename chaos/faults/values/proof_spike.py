"""Part of check ``injection``: proof of a spike, and of the planned global norm.

The proof is the rank's own record of the scale factor of its gradients, and the norm in its digest of the step: a
scaled gradient that did not reach the reduced one has changed nothing. Where no agent sees the reduced gradients, the
state of the step shows that: it has to differ from the fault-free run's.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import TRAIN, exit_status, places, signal_name, signal_number, step_of
from chaos.evidence.injection.agreement import agrees
from chaos.evidence.injection.triggers import Demands, barrier
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case, Proof, all_of
from chaos.faults.values.proof import gave_up, state_doubts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

KIND = "spike"
SCALED = "fault.scaled"
"""The event for each time that a rank scaled its gradients."""

_TOLERANCE = 1e-3
"""Relative difference between the requested norm and the actual one: the factor is rounded to a float32."""


def scaled_too_often(history: History, fault: PlannedFault) -> list[Event]:
    """Return the records of a spike by ranks that made it more often than the scenario says."""
    if fault.kind != KIND:
        return []
    allowed = 1 + _repeat(fault)
    records = history.select(SCALED, fault=fault.id)
    ranks = [event.rank for event in records]
    return [event for event in records if ranks.count(event.rank) > allowed]


def scaled_doubts(
    plan: Plan, history: History, fault: PlannedFault, demands: Demands, landing: Event, injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt the spike in the rank of ``injection``. None for faults of another kind."""
    if fault.kind != KIND:
        return
    rank = injection.rank
    records = [event for event in history.select(SCALED, fault=fault.id, rank=rank) if event.pid == injection.pid]
    if not records:
        yield f"rank {rank}'s own history has no gradients that it scaled", (landing.source,)
        return
    if len(records) < 1 + _repeat(fault):
        text = f"rank {rank} scaled its gradients {len(records)} times, not {1 + _repeat(fault)} times"
        yield text, places(records)
    for event in records:
        factor = event.data.get("factor")
        if not isinstance(factor, (int, float)) or factor == 1:
            yield f"rank {rank} scaled its gradients by {factor!r}: that changes nothing", (event.source,)
        if (point := barrier(event.data.get("step"), event.data.get("phase"))) not in demands.barriers:
            yield f"rank {rank} scaled them at {point}: the planned fault was not injected", (event.source,)
        if (order := out_of_order(injection, event)) is not None:
            yield f"rank {rank} scaled them before it was told to{order}", (event.source, injection.source)
        if plan.training.gradients:
            yield from _norm_doubts(plan, history, fault, event)
    yield from _course_doubts(plan, history, fault, injection)
    if (order := out_of_order(records[0], landing)) is not None:
        yield f"the landing is recorded before rank {rank} scaled them{order}", (landing.source, records[0].source)
    for end in history.select("rank.exit", attempt=injection.attempt, rank=rank, pid=injection.pid):
        number = signal_number(end.data.get("signal"))
        if (order := out_of_order(records[0], end)) is not None:
            yield (
                f"rank {rank} had {exit_status(end)} before it scaled them ({signal_name(number)}){order}",
                (end.source,),
            )


def _repeat(fault: PlannedFault) -> int:
    repeat = fault.parameters.get("repeat", 0)
    return repeat if isinstance(repeat, int) else 0


def _norm_doubts(plan: Plan, history: History, fault: PlannedFault, scaled: Event) -> Iterator[Doubt]:
    """Yield a doubt unless the reduced gradients of the step have the norm of the plan."""
    step = scaled.data.get("step")
    digests = history.select("digest", attempt=TRAIN, rank=scaled.rank, pid=scaled.pid, step=step)
    digest = next((event for event in digests if event.seq > scaled.seq), None)
    gradients = digest.data.get("gradients") if digest is not None else None
    if digest is None or not isinstance(gradients, dict):
        yield f"the norm that rank {scaled.rank}'s spike came to in step {step} is not recorded", (scaled.source,)
        return
    norm = float.fromhex(str(gradients["norm"]))
    planned = fault.parameters.get("norm")
    if isinstance(planned, (int, float)):
        if norm != planned and not abs(norm - planned) <= _TOLERANCE * planned:  # also where the norm is no number
            yield f"the global norm of step {step} came to {norm:g}, not {planned:g}", (digest.source, scaled.source)
        return
    threshold = plan.fault_tolerance.watch.threshold if plan.fault_tolerance.watch is not None else 0.0
    if not norm >= threshold and any(fault.id in recovery.faults for recovery in plan.response.recoveries):
        text = f"the global norm of step {step} came to {norm:g} only, below the threshold {threshold:g}"
        yield text, (digest.source, scaled.source)


def _course_doubts(plan: Plan, history: History, fault: PlannedFault, injection: Event) -> Iterator[Doubt]:
    """Yield a doubt where a spike that stays in the weights has made a later step abnormal as well.

    The plan has one rollback for each planned spike. A later step whose own gradients reach the threshold is taken back
    too, and rightly so: how often is not known before the run.
    """
    watch = plan.fault_tolerance.watch
    answered = any(fault.id in recovery.faults for recovery in plan.response.recoveries)
    at = fault.trigger.get("step")
    if watch is None or not isinstance(at, int) or (answered and not _repeat(fault)):
        return
    planned = {other.trigger.get("step") for other in plan.faults if other.effect.alters == "norm"}
    for digest in history.select("digest", attempt=TRAIN, rank=injection.rank, pid=injection.pid):
        step, gradients = step_of(digest), digest.data.get("gradients")
        if step <= at or step in planned or not isinstance(gradients, dict):
            continue
        norm = float.fromhex(str(gradients["norm"]))
        if norm >= watch.threshold:
            text = (
                f"the spike stays in the weights and throws the training off its course: the global norm of step {step}"
                f" came to {norm:g}, the threshold {watch.threshold:g} or more, without a fault there. A smaller spike "
                "leaves later steps below the threshold"
            )
            yield text, (digest.source,)
            return


def _scaled(case: Case) -> Iterator[Doubt]:
    yield from scaled_doubts(case.plan, case.history, case.fault, case.demands, case.landing, case.injection)


def _shown(case: Case) -> Iterator[Doubt]:
    """Yield every doubt of the effect where no agent sees the reduced gradients: the state then has to show it."""
    if case.fault.kind != KIND or case.plan.training.gradients:
        return
    injection = case.injection
    for event in case.history.select(SCALED, fault=case.fault.id, rank=injection.rank):
        step = event.data.get("step")
        if event.pid != injection.pid or not isinstance(step, int):
            continue
        if not gave_up(case.plan, case.history, event, step):
            yield from state_doubts(case.history, case.artifacts, event, step)


SPIKE = Proof(
    "the rank's own record of the factor, the effect in the step's digest",
    ("factor", "norm"),
    all_of(_scaled, _shown, agrees(SCALED, "factor", "norm")),
)
