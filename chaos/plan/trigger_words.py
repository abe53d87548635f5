"""A fault's trigger as plain data: the points at which it holds ranks, and its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.base.rank_sets import named
from chaos.plan.parts.fault import PlannedFault

Point = tuple[int | None, str]
"""A step and a phase.

At the entry of an SDK handler the phase is ``handler.NAME``, at a point in it ``handler.NAME/PHASE``; the step is open
there (None).
"""

HANDLER = "handler."


def waiting_for(fault: PlannedFault) -> str:
    """Return what the fault waits for, in words."""
    parts = []
    for node in parts_of(fault.trigger):
        if (point := barrier_of(node)) is not None:
            where = f"step {point[0]} {point[1]}" if point[0] is not None else f"handler {point[1][len(HANDLER) :]}"
            parts.append(f"{where} of {named(fault.ranks)}")
        if node.get("elapsed") is not None:
            parts.append(f"{node['elapsed']:g} s since the first step")
        if log := node.get("log"):
            parts.append(f"a log line with {log['contains']!r}")
        if node.get("after"):
            parts.append(f"fault {node['after']} to land")
        if node.get("healed"):
            parts.append(f"fault {node['healed']} to end")
    return ", ".join(parts)


def parts_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a trigger, and all triggers that it consists of."""
    yield node
    for key in ("all", "any"):
        for child in node.get(key) or ():
            yield from parts_of(child)


def barrier_of(node: dict[str, Any]) -> Point | None:
    """Return the point at which a trigger holds its ranks; None where it holds none."""
    if (handler := node.get("handler")) is not None:
        return None, f"{HANDLER}{handler}" + (f"/{node['phase']}" if node.get("phase") else "")
    step = node.get("step")
    return None if step is None else (step, node["phase"])
