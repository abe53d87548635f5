"""The node of a fault, and its first act there: common to several ranks of a node."""

from __future__ import annotations

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault


def nodes_of(history: History, injection: Event) -> set[object]:
    """Return the node of the hit process, by the harness's identification: one, or none where it is not known."""
    events = history.select("rank.found", attempt=injection.attempt, rank=injection.rank)
    return {event.data.get("node") for event in events if event.pid == injection.pid} - {None}


def first_act(history: History, fault: PlannedFault, injection: Event) -> Event:
    """Return the first injection of the fault in this launch.

    An act on a node is ordered once, at the first of its ranks.
    """
    begun = history.select("fault.injecting", fault=fault.id, attempt=injection.attempt) or [injection]
    return min(begun, key=lambda event: event.mono)
