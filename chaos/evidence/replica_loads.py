"""Ranks that load no checkpoint by themselves: another one of their replica group loads it, and gives it to them.

Whether they were given it is told by their state before the first step, which is compared like that of a rank that has
loaded the file.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.history.event import Event
from chaos.plan.model import Plan


def loaded_by_replica(plan: Plan, loads: Iterable[Event]) -> dict[int, int]:
    """Ranks of which neither the beginning nor the end of a load is recorded, each with one of its replica group that
    has begun and ended one.

    Of a rank with one of the two in its record, the other is missing, and nobody knows what it has loaded.
    """
    told: dict[int, set[str]] = {}
    for event in loads:
        if event.rank is not None:
            told.setdefault(event.rank, set()).add(event.event)
    found: dict[int, int] = {}
    for group in plan.layout.replica_groups:
        givers = [rank for rank in group if {"load.begin", "load.end"} <= told.get(rank, set())]
        found |= {rank: givers[0] for rank in group if givers and rank not in told}
    return found
