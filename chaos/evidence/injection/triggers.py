"""The demands of a planned trigger on the moment of injection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Barrier = tuple[int | None, str]
"""Step and phase.

At the entry of an SDK handler the phase is ``handler.NAME``, at a point in it ``handler.NAME/PHASE``; the step is open
there (None).
"""

HANDLER = "handler."


@dataclass(frozen=True)
class Demands:
    """Conditions of a trigger, flattened.

    Every member of ``barriers``, ``elapsed`` (seconds), ``logs``, ``after`` and ``healed`` must hold when ``every`` is
    True, at least one of them otherwise.
    """

    barriers: tuple[Barrier, ...]
    elapsed: tuple[float, ...]
    logs: tuple[dict[str, Any], ...]
    after: tuple[str, ...]
    every: bool
    healed: tuple[str, ...] = ()


def demands(trigger: dict[str, Any]) -> Demands:
    """Flatten a trigger as the plan holds it (plain data of the scenario's ``trigger``)."""
    parts = list(_flatten(trigger))
    barriers = [inner_barrier for part in parts if (inner_barrier := barrier_of(part)) is not None]
    return Demands(
        barriers=tuple(barriers),
        elapsed=tuple(float(part["elapsed"]) for part in parts if part.get("elapsed") is not None),
        logs=tuple(part["log"] for part in parts if part.get("log")),
        after=tuple(part["after"] for part in parts if part.get("after")),
        every=not _has_alternatives(trigger),
        healed=tuple(part["healed"] for part in parts if part.get("healed")),
    )


def barrier_of(trigger: Mapping[str, Any]) -> Barrier | None:
    """Return the barrier in a trigger itself, without the triggers inside it."""
    if trigger.get("step"):
        return trigger["step"], trigger.get("phase") or "step.begin"
    return (None, _of_handler(trigger)) if trigger.get("handler") else None


def _of_handler(part: Mapping[str, Any]) -> str:
    return f"{HANDLER}{part['handler']}" + (f"/{part['phase']}" if part.get("phase") else "")


def barrier(step: object, phase: object) -> Barrier | None:
    """Return a recorded step and phase as a barrier, None if they are none."""
    if not isinstance(phase, str):
        return None
    if phase.startswith(HANDLER):
        return None, phase
    return (step, phase) if isinstance(step, int) else None


def place_text(at: Barrier) -> str:
    """Return a barrier in words."""
    if at[0] is not None:
        return f"step {at[0]}, phase {at[1]}"
    handler, _, point = at[1].removeprefix(HANDLER).partition("/")
    return f"{point} in handler {handler}" if point else f"the entry of handler {handler}"


def _flatten(trigger: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield trigger
    for key in ("all", "any"):
        for part in trigger.get(key) or ():
            yield from _flatten(part)


def _has_alternatives(trigger: dict[str, Any]) -> bool:
    alternatives = trigger.get("any") or ()
    return len(alternatives) > 1 or any(_has_alternatives(part) for part in trigger.get("all") or ())
