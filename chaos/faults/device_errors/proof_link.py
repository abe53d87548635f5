"""Part of check ``injection``: proof of a link that was taken down inside a rank's device layer.

No signal shows such a fault. The proof is the rank's own record that its link is down, at the barrier where it was
held.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.injection.agreement import severed_as_shown
from chaos.evidence.injection.triggers import Demands, barrier, place_text
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case, Proof, all_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

KIND = "link"
ACTION = "link.down"


def severed_doubts(
    history: History, fault: PlannedFault, demands: Demands, landing: Event, injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt the link fault in the rank of ``injection``. None for faults of another kind."""
    if fault.kind != KIND:
        return
    rank = injection.rank
    records = [
        event
        for event in history.select("fault.device", fault=fault.id, rank=rank)
        if event.pid == injection.pid and event.data.get("action") == ACTION
    ]
    if not records:
        yield f"rank {rank}'s own history does not say that its link went down", (landing.source,)
        return
    severed = records[0]
    point = barrier(severed.data.get("step"), severed.data.get("phase"))
    if demands.barriers and point not in demands.barriers:
        where = place_text(point) if point else "an unknown place"
        yield f"rank {rank}'s link went down at {where}: the planned fault was not injected", (severed.source,)
    if (order := out_of_order(injection, severed)) is not None:
        yield f"rank {rank}'s link was down before the injection{order}", (severed.source, injection.source)
    if (order := out_of_order(severed, landing)) is not None:
        yield f"the landing is recorded before rank {rank}'s link was down{order}", (landing.source, severed.source)
    ended = history.select("step.end", attempt=severed.attempt, rank=rank, pid=severed.pid)
    if any(event.mono > severed.mono for event in ended):
        yield f"rank {rank} ended a step behind its broken link", (severed.source,)


def _severed(case: Case) -> Iterator[Doubt]:
    yield from severed_doubts(case.history, case.fault, case.demands, case.landing, case.injection)


LINK = Proof("the rank's own record that its link is down", ("device",), all_of(_severed, severed_as_shown))
