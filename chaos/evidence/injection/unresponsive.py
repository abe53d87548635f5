"""Part of check ``injection``: proof that a rank stood still, or was cut off, until the harness released it.

A stop can be reverted by any hand: the process's parent, a debugger, an operator. So the proof at the landing is not
enough. A stopped process writes nothing; a process off the network ends no step that needs the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import Any

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import signal_number, step_of
from chaos.evidence.injection.cut_off import is_cut_off
from chaos.evidence.injection.on_node import is_silenced
from chaos.evidence.injection.triggers import HANDLER
from chaos.evidence.proof import Case
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.points import point

_SIGKILL = 9
_RELEASED = "barrier.released"


def silence_doubts(
    history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object], injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt the silence of the rank of ``injection``. Nothing for faults of another kind.

    The duration of a partition is judged with the other conditions (:mod:`chaos.evidence.injection.conditions`). The
    harness records ``fault.ending`` just before it releases the rank. In a run without this event the heal is the end;
    there a rank held at a barrier may have been released a moment before the record.
    """
    if not is_silenced(fault):
        return
    rank, pid = injection.rank, injection.pid
    endings = history.select("fault.ending", fault=fault.id, attempt=landing.attempt)
    ends = endings or history.select("fault.healed", fault=fault.id)
    events = history.select(attempt=injection.attempt, rank=rank, pid=pid, writer="agent")
    later = [event for event in events if landing.surely_before(event) and (not ends or event.surely_before(ends[0]))]
    if not endings:
        later = [event for event in later if event.event != _RELEASED]
    if effect_of(fault.kind).cut_off or is_cut_off(fault):
        later = [
            event for event in later if event.event == "step.end" and not may_end(event, events, landing, evidence)
        ]
    if later:
        doubt = f"rank {rank} went on after the landing: {later[0].event} (and {len(later) - 1} more events)"
        yield doubt, (later[0].source, landing.source)
    elif endings and not is_cut_off(fault) and (why := _let_go(history, fault, evidence, endings[0])) is not None:
        yield (
            f"nothing shows that rank {rank} was under the fault up to its end: {why}",
            (endings[0].source, landing.source),
        )


def may_end(end: Event, events: list[Event], landing: Event, evidence: Mapping[str, object]) -> bool:
    """Return whether a rank without a network may still end this step: it was past the step's all-reduce already."""
    step = step_of(end)
    if not any(
        event.event == "step.begin" and step_of(event) == step and event.maybe_before(landing) for event in events
    ):
        return False
    held = evidence.get("barrier")
    at, phase = (held.get("step"), held.get("phase")) if isinstance(held, dict) else (None, None)
    if at != step or not isinstance(at, int) or not isinstance(phase, str) or phase.startswith(HANDLER):
        return True
    return point(at, phase).contributed


def _let_go(history: History, fault: PlannedFault, landed: Mapping[str, object], ending: Event) -> str | None:
    """Return why the observation just before the release does not show the silence; None where it does."""
    listed = ending.data.get("evidence")
    entries: list[dict[str, Any]] = (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    evidence = next((entry for entry in entries if entry.get("rank") == landed.get("rank")), None)
    if evidence is None or evidence.get("pid") != landed.get("pid"):
        return "its process was not looked at then"
    effect = effect_of(fault.kind)
    if effect.silenced is not None and resolve_name(effect.silenced)(evidence):
        return None
    if evidence.get("ended") is True:
        exits = history.select("rank.exit", attempt=ending.attempt, rank=evidence.get("rank"), pid=evidence.get("pid"))
        killed = [signal_number(event.data.get("signal")) == _SIGKILL for event in exits]
        if not effect.stopped or killed == [True]:
            return None
        return "it had ended, but not by SIGKILL; no other signal ends a stopped process"
    return "another process may have continued it before"


def silence(case: Case) -> Iterator[Doubt]:
    """Yield the doubts of :func:`silence_doubts`, for a case."""
    yield from silence_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)
