"""The moment of a fault: the scenario's trigger, evaluated against the known facts of the run so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chaos.plan.parts.fault import PlannedFault
from chaos.plan.trigger_words import HANDLER, Point, barrier_of, parts_of


@dataclass
class Known:
    """The facts that triggers may ask for.

    ``elapsed`` is in seconds since every rank began its first step, None before.

    ``held`` maps a fault to the ranks that wait at each of its points. ``logged`` holds the (text, rank or None) of log
    triggers that were seen; ``landed`` the ids of landed faults, ``healed`` the ids of faults that have ended again.
    """

    elapsed: float | None = None
    held: dict[str, dict[Point, set[int]]] = field(default_factory=dict)
    logged: set[tuple[str, int | None]] = field(default_factory=set)
    landed: set[str] = field(default_factory=set)
    healed: set[str] = field(default_factory=set)


def armed_points(fault: PlannedFault) -> list[Point]:
    """Return the points at which the agent must hold the fault's ranks."""
    return [point for node in parts_of(fault.trigger) if (point := barrier_of(node)) is not None]


def log_texts(fault: PlannedFault) -> list[tuple[str, int | None]]:
    """Return the texts that its trigger waits for in logs, each with the rank or None for any process."""
    return [(log["contains"], log.get("rank")) for node in parts_of(fault.trigger) if (log := node.get("log"))]


def fires(fault: PlannedFault, known: Known) -> bool:
    """Return whether the trigger holds now."""
    return _holds(fault.trigger, fault, known)


def too_early(fault: PlannedFault, point: Point, known: Known) -> bool:
    """Return whether a rank at a handler is there in an earlier recovery than the fault's own.

    A handler is called in every recovery. As long as a fault that must precede this one has not landed, the call
    belongs to an earlier recovery.
    """
    afters = [after for node in parts_of(fault.trigger) if (after := node.get("after")) is not None]
    return point[1].startswith(HANDLER) and any(after not in known.landed for after in afters)


def _holds(node: dict[str, Any], fault: PlannedFault, known: Known) -> bool:
    conditions = []
    if (point := barrier_of(node)) is not None:
        conditions.append(set(fault.ranks) <= known.held.get(fault.id, {}).get(point, set()))
    if (elapsed := node.get("elapsed")) is not None:
        conditions.append(known.elapsed is not None and known.elapsed >= elapsed)
    if log := node.get("log"):
        conditions.append((log["contains"], log.get("rank")) in known.logged)
    if (after := node.get("after")) is not None:
        conditions.append(after in known.landed)
    if (healed := node.get("healed")) is not None:
        conditions.append(healed in known.healed)
    if (every := node.get("all")) is not None:
        conditions.append(all(_holds(child, fault, known) for child in every))
    if (some := node.get("any")) is not None:
        conditions.append(any(_holds(child, fault, known) for child in some))
    return bool(conditions) and all(conditions)
