"""Ranks that load no checkpoint by themselves: another rank of their replica group loads it and hands it over.

Their state before the first step shows whether they got it; it is compared like the state of a rank that has loaded the
file.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.history.event import Event
from chaos.plan.model import Plan


def loaded_by_replica(plan: Plan, loads: Iterable[Event]) -> dict[int, int]:
    """Return the ranks without a record of a load, each with a rank of its replica group that has begun and ended one.

    A rank with only the beginning or only the end in its record does not count: its load is not known.
    """
    load_events: dict[int, set[str]] = {}
    for event in loads:
        if event.rank is not None:
            load_events.setdefault(event.rank, set()).add(event.event)
    givers_by_rank: dict[int, int] = {}
    for group in plan.layout.replica_groups:
        givers = [rank for rank in group if {"load.begin", "load.end"} <= load_events.get(rank, set())]
        givers_by_rank |= {rank: givers[0] for rank in group if givers and rank not in load_events}
    return givers_by_rank
