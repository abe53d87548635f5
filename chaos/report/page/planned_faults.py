"""The planned faults: what the plan says of each, how it landed, and when it was noticed."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.facts import ranks_text
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault
from chaos.report.page.model import PlannedFault as FaultMark
from chaos.report.page.moments import Clock, step_in, whole


def planned_text(fault: PlannedFault) -> str:
    """Return a planned fault in words: its kind, its ranks or role, and its trigger."""
    target = fault.role or (ranks_text(fault.ranks) if fault.ranks else "the job")
    trigger = ", ".join(f"{key} {value}" for key, value in fault.trigger.items())
    return f"{fault.kind} {target}, {trigger}" if trigger else f"{fault.kind} {target}"


def planned_fault(fault: PlannedFault, history: History, noticed: Mapping[str, float], clock: Clock) -> FaultMark:
    """Return a planned fault as it was made; ``noticed`` says when the recovery from each began."""
    landed = history.first("fault.landed", fault=fault.id)
    acted = history.first("fault.injecting", fault=fault.id) or landed
    at = None if acted is None else clock.seconds(acted.mono)
    then = noticed.get(fault.id)
    then = then if at is not None and then is not None and then >= at else None
    phase = fault.trigger.get("phase")
    return FaultMark(
        fault.id,
        at,
        then,
        fault.kind,
        whole(fault.trigger.get("step")),
        phase if isinstance(phase, str) else None,
        fault.ranks,
        planned_text(fault),
        None if landed is None else _landing(landed, at, then, clock),
    )


def _landing(landed: Event, at: float | None, noticed: float | None, clock: Clock) -> str:
    step, phase = step_in(landed), landed.data.get("phase")
    places = [] if step is None else [f"in step {step}"]
    if isinstance(phase, str):
        places.append(phase if places else f"at {phase}")
    place = f"{', '.join(places)}, " if places else ""
    text = f"landed {place}{clock.seconds(landed.mono):.3f} s after the run's start"
    later = "" if at is None or noticed is None else f"; noticed {noticed - at:.3f} s after the act"
    return f"{text} ({landed.source}){later}"


def step_of_fault(fault: PlannedFault, history: History) -> int | None:
    """Return the step in which a fault landed, or the latest that any rank had begun; before it lands, the planned."""
    landed = history.first("fault.landed", fault=fault.id)
    step = None if landed is None else step_in(landed)
    if step is None:
        step = whole(fault.trigger.get("step"))
    acted = history.first("fault.injecting", fault=fault.id) or landed
    if step is None and acted is not None:
        begun = [(event.mono, step_in(event)) for event in history.select("step.begin") if event.mono <= acted.mono]
        step = max(begun, default=(0, None))[1]
    return step
