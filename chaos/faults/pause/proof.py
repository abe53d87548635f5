"""Part of check ``injection``: proof of a pause, by the place and the length of the ranks' own records.

Every rank passes the SDK's ``tft_pause_train`` after every step. It is paused there where the SDK calls the handler
``stream_sync`` meanwhile, which it does once the rank's training has blocked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.evidence.facts import TRAIN
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case, Proof
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

KIND = "pause"

Doubt = tuple[str, tuple[str, ...]]
"""A finding against the proof, and its places."""


@dataclass(frozen=True)
class Halt:
    """One stop of a rank: it came to the point, the SDK noticed that it was blocked, it went on (None: it did not)."""

    rank: int
    step: int
    enter: Event
    noticed: Event
    exit: Event | None


def halts(history: History, rank: int) -> list[Halt]:
    """Return the stops of a rank in the faulted launch, in order."""
    stops: list[Halt] = []
    enter: Event | None = None
    noticed: Event | None = None
    for event in history.select(attempt=TRAIN, rank=rank, writer="agent"):
        if event.event == "pause.enter":
            enter, noticed = event, None
        elif event.event == "handler.exit" and event.data.get("name") == "stream_sync" and event.data.get("ok") is True:
            noticed = event if enter is not None else None
        elif event.event == "pause.exit":
            if enter is not None and noticed is not None:
                stops.append(Halt(rank, _step(enter), enter, noticed, event))
            enter = noticed = None
    if enter is not None and noticed is not None:
        stops.append(Halt(rank, _step(enter), enter, noticed, None))
    return stops


def _step(event: Event) -> int:
    step = event.data.get("step")
    return step if isinstance(step, int) else -1


def paused_doubts(
    history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object], injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt the pause of the rank of ``injection``. None for faults of another kind."""
    if fault.kind != KIND:
        return
    rank, paused_step = injection.rank, evidence.get("paused")
    assert rank is not None
    stops = [halt for halt in halts(history, rank) if not halt.noticed.surely_before(injection)]
    if not isinstance(paused_step, int):
        yield f"the evidence for rank {rank} has no step after which it is paused", (landing.source,)
    if not stops:
        yield f"rank {rank}'s own history has no pause", (landing.source,)
        return
    first = stops[0]
    if first.step != paused_step:
        yield f"rank {rank} was paused after step {first.step}; the evidence says {paused_step}", (first.enter.source,)
    if first.enter.pid != injection.pid:
        yield f"process {first.enter.pid} was paused, not process {injection.pid}", (first.enter.source,)
    if (order := out_of_order(first.noticed, landing)) is not None:
        yield f"the landing is recorded before rank {rank} was paused{order}", (landing.source, first.noticed.source)
    if first.exit is not None and (order := out_of_order(landing, first.exit)) is not None:
        yield f"rank {rank} went on before the landing{order}", (landing.source, first.exit.source)


def _paused(case: Case) -> Iterator[Doubt]:
    yield from paused_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


PAUSED = Proof("the rank's own record of the pause", ("paused",), _paused)
