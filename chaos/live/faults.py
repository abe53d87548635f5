"""The state of each planned fault, by the events of the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from chaos.evidence.text import readable
from chaos.history.event import Event
from chaos.live.state import FaultState
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.trigger_words import waiting_for

_STATES: Mapping[str, str] = MappingProxyType(
    {
        "fault.armed": "armed",
        "fault.injecting": "acting",
        "fault.landed": "landed",
        "fault.missed": "missed",
        "fault.healed": "undone",
    }
)
_LONGEST = 200


@dataclass
class _Fault:
    planned: PlannedFault
    state: str = "planned"
    mono: int | None = None
    step: int | None = None
    phase: str | None = None
    text: str = ""


class Faults:
    """The planned faults of a run."""

    def __init__(self, plan: Plan) -> None:
        self._faults = {fault.id: _Fault(fault) for fault in plan.faults}

    def take(self, event: Event) -> PlannedFault | None:
        """Take in an event of the harness; return the fault that it is about."""
        fault, state = self._faults.get(str(event.data.get("fault"))), _STATES.get(event.event)
        if fault is None or state is None:
            return None
        if state != fault.state:
            fault.mono = event.mono
        fault.state = state
        fault.text = readable(str(event.data.get("reason") or event.data.get("how") or ""))[:_LONGEST]
        if state == "landed":
            step, phase = event.data.get("step"), event.data.get("phase")
            fault.step = step if isinstance(step, int) else None
            fault.phase = readable(phase) if isinstance(phase, str) else None
        return fault.planned

    @property
    def waiting(self) -> str:
        """The faults that have neither landed nor been missed, each with its trigger."""
        still = [fault for fault in self._faults.values() if fault.state in ("planned", "armed", "acting")]
        return readable(
            "; ".join(f"fault {fault.planned.id} waits for {waiting_for(fault.planned)}" for fault in still)
        )

    def states(self, epoch: Callable[[int], float], now: float) -> tuple[FaultState, ...]:
        """Return the state of every fault, in the order of the plan."""
        return tuple(_state(fault, epoch, now) for fault in self._faults.values())


def _state(fault: _Fault, epoch: Callable[[int], float], now: float) -> FaultState:
    planned, since = fault.planned, None if fault.mono is None else epoch(fault.mono)
    return FaultState(
        readable(planned.id),
        readable(planned.kind),
        planned.ranks,
        planned.role,
        fault.state,
        readable(waiting_for(planned)),
        fault.step,
        fault.phase,
        since,
        None if since is None else max(0.0, now - since),
        fault.text,
    )
