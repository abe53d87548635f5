"""Ids of faults."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.scenario.models.fault import Fault


def default_id(kind: str, position: int) -> str:
    """Return the id of a fault that names none: its kind and its place in the schedule, counted from 1."""
    return f"{kind}-{position}"


def fault_ids(faults: Sequence[Fault]) -> tuple[str, ...]:
    """Return the id of every fault, written or default, in the order of the schedule."""
    return tuple(
        fault.id if fault.id is not None else default_id(fault.kind, position)
        for position, fault in enumerate(faults, start=1)
    )
