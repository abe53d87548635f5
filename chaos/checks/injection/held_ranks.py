"""Part of check ``injection``: a rank was held at the planned barrier when it was hit, by its own record."""

from __future__ import annotations

from chaos.checks.injection.fault_case import FaultCase
from chaos.evidence.background import WRITTEN
from chaos.evidence.facts import by_rank, step_of
from chaos.evidence.injection.deaths import ACTING
from chaos.evidence.injection.triggers import HANDLER, Barrier, barrier, demands, place_text
from chaos.evidence.order import out_of_order
from chaos.history.event import Event
from chaos.history.reader import History

_AFTER_STEP = ("step.end", "checkpoint.begin", "checkpoint.write", "checkpoint.end", "checkpoint.load")
"""Phases at which the step itself has ended."""


def judge_barrier(
    case: FaultCase, landing: Event, evidence: dict[str, object], injection: Event, *, dead: bool
) -> None:
    """Judge the barrier in the evidence for a rank by the trigger and by the rank's own history.

    ``dead``: the fault ends the rank's process, so the rank must record nothing after its barrier.
    """
    trigger_demands = demands(case.fault.trigger)
    if not trigger_demands.barriers:
        return
    rank = injection.rank
    shown_barrier = evidence.get("barrier")
    held = barrier(shown_barrier.get("step"), shown_barrier.get("phase")) if isinstance(shown_barrier, dict) else None
    if held is None:
        if trigger_demands.every:
            case.unproven(f"no barrier in the evidence for rank {rank}", landing.source)
        return
    if held not in trigger_demands.barriers:
        observation = f"rank {rank} was at {place_text(held)}: the planned fault was not injected"
        case.unproven(observation, landing.source)
    recorded = (landing.data.get("step"), landing.data.get("phase"))
    if recorded != held and recorded != (None, None):
        case.unproven(f"the landing says step {recorded[0]}, phase {recorded[1]}, its evidence {held}", landing.source)
    barriers = [
        event
        for event in by_rank(case.history, "barrier.reached", injection.attempt or "").get(rank or 0, [])
        if event.data.get("fault") == case.fault.id and event.pid == injection.pid
    ]
    if not barriers:
        case.unproven(f"rank {rank}'s own history has no barrier of this fault", landing.source)
        return
    reached = barriers[-1]
    recorded_place = barrier(reached.data.get("step"), reached.data.get("phase"))
    if recorded_place != held:
        place = place_text(recorded_place) if recorded_place else "nothing about its place"
        observation = f"rank {rank}'s own history says {place}"
        case.unproven(f"{observation}; the evidence says {place_text(held)}", reached.source, landing.source)
    if (late := out_of_order(reached, injection)) is not None:
        case.unproven(f"rank {rank} was hit before it reached the barrier{late}", injection.source, reached.source)
    if dead:
        _judge_silence(case, reached)
        _judge_progress(case, reached, held)


def _events_of_process(history: History, like: Event) -> list[Event]:
    return [
        event
        for event in history.events
        if (event.attempt, event.rank, event.pid) == (like.attempt, like.rank, like.pid) and event.writer == like.writer
    ]


def _judge_silence(case: FaultCase, reached: Event) -> None:
    """Judge that a process ended at the barrier recorded nothing after it, except its own coming end.

    A checkpoint may be written in the background while the training is held.
    """
    later = [
        event
        for event in _events_of_process(case.history, reached)
        if event.seq > reached.seq and event.event not in (ACTING, WRITTEN)
    ]
    if str(reached.data.get("phase")).startswith(HANDLER):
        # The handler runs in a thread of its own, and only this thread is held.
        later = [
            event for event in later if event.event == "handler.exit" and event.data.get("name") == _handler(reached)
        ]
    if later:
        observation = (
            f"rank {reached.rank} went on after the barrier: {later[0].event} (and {len(later) - 1} more events)"
        )
        case.unproven(observation, later[0].source, reached.source)


def _handler(reached: Event) -> str:
    return str(reached.data.get("phase")).removeprefix(HANDLER)


def _judge_progress(case: FaultCase, reached: Event, held: Barrier) -> None:
    """Judge that the rank's own steps agree with the barrier: it was really there."""
    before = [event for event in _events_of_process(case.history, reached) if event.seq < reached.seq]
    begun = [step_of(event) for event in before if event.event == "step.begin"]
    ended = [step_of(event) for event in before if event.event == "step.end"]
    step, phase = held
    if step is None:  # a handler is called in any step
        return
    last_begun, last_ended = (max(begun, default=None), max(ended, default=None))
    if last_begun is None or (last_begun != step and not (phase == "step.begin" and last_begun == step - 1)):
        case.unproven(f"rank {reached.rank} had begun step {last_begun} at the barrier of step {step}", reached.source)
    if last_ended is not None and last_ended > step - (phase not in _AFTER_STEP):
        case.unproven(f"rank {reached.rank} had ended step {last_ended} at {phase} of step {step}", reached.source)
