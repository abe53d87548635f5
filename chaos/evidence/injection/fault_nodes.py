"""Which node a fault was made on, and when it was first made there: what several ranks of a node have in common."""

from __future__ import annotations

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault


def nodes_of(history: History, injection: Event) -> set[object]:
    """The node of the process that was hit, by the harness's identification: one, or none where nothing tells."""
    events = history.select("rank.found", attempt=injection.attempt, rank=injection.rank)
    return {event.data.get("node") for event in events if event.pid == injection.pid} - {None}


def first_act(history: History, fault: PlannedFault, injection: Event) -> Event:
    """The first injection of the fault in this launch: what takes a node is ordered once, at the first of its ranks."""
    begun = history.select("fault.injecting", fault=fault.id, attempt=injection.attempt) or [injection]
    return min(begun, key=lambda event: event.mono)
