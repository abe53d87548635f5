"""Part of check ``injection``: proof of a fault that the device reports as an error, raised inside the rank.

No signal shows such a fault. The proof is the rank's own record of the error and its place, and the life of the process
afterwards: otherwise something else has hit the rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status, places, signal_name, signal_number
from chaos.evidence.injection.triggers import Demands, barrier, place_text
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case, Proof
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

KINDS = ("uce", "ecc", "hcce", "suspect-remote", "link-error", "exception")
"""Fault kinds that are raised inside the rank."""


def raised_again(history: History, fault: PlannedFault) -> list[Event]:
    """Return the records of the error by ranks that raised it more than once."""
    records = history.select("fault.raised", fault=fault.id)
    ranks = [event.rank for event in records]
    return [event for event in records if ranks.count(event.rank) > 1]


def raised_doubts(
    history: History,
    fault: PlannedFault,
    demands: Demands,
    landing: Event,
    evidence: dict[str, object],
    injection: Event,
) -> Iterator[Doubt]:
    """Yield every reason to doubt the error in the rank of ``injection``. None for faults of another kind."""
    if fault.kind not in KINDS:
        return
    rank = injection.rank
    shown = evidence.get("raised")
    number = signal_number(evidence.get("signal"))
    if number is not None:
        yield f"the evidence for rank {rank} shows {signal_name(number)}, not an error raised", (landing.source,)
    if not shown:
        yield f"the evidence for rank {rank} has no error that was raised", (landing.source,)
    records = [
        event for event in history.select("fault.raised", fault=fault.id, rank=rank) if event.pid == injection.pid
    ]
    if not records:
        yield f"rank {rank}'s own history has no error that it raised", (landing.source,)
        return
    raised = records[0]
    if raised.data.get("text") != shown:
        text = f"rank {rank} raised {raised.data.get('text')!r}; the evidence says {shown!r}"
        yield text, (raised.source, landing.source)
    point = barrier(raised.data.get("step"), raised.data.get("phase"))
    if demands.barriers and point not in demands.barriers:
        where = place_text(point) if point else "an unknown place"
        doubt = f"rank {rank} raised it at {where}: the planned fault was not injected"
        yield doubt, (raised.source,)
    for name in ("type", "text"):
        planned = fault.parameters.get(name)
        if planned is not None and raised.data.get(name) != planned:
            yield f"rank {rank} raised the {name} {raised.data.get(name)!r}, not {planned!r}", (raised.source,)
    yield from _not_lost(fault, raised)
    if (order := out_of_order(injection, raised)) is not None:
        yield f"rank {rank} raised it before it was injected{order}", (raised.source, injection.source)
    if (order := out_of_order(raised, landing)) is not None:
        yield f"the landing is recorded before rank {rank} raised it{order}", (landing.source, raised.source)
    yield from _not_alive(history, raised)


def _not_lost(fault: PlannedFault, raised: Event) -> Iterator[Doubt]:
    """Yield a doubt where the rehearsal's loss of memory is not the planned one; on a device nothing shows it."""
    lost_parameters = raised.data.get("parameters")
    if fault.effect.loses_memory and lost_parameters == 0:
        yield f"rank {raised.rank} has not lost any parameter, so a repair would prove nothing", (raised.source,)
    elif fault.effect.spares_memory and lost_parameters not in (None, 0):
        yield f"rank {raised.rank} has lost {lost_parameters} parameters, and none should be", (raised.source,)


def _not_alive(history: History, raised: Event) -> Iterator[Doubt]:
    """Yield a doubt where the process has ended: an error alone ends no process, so something else has hit it."""
    events = history.select(attempt=raised.attempt, rank=raised.rank, pid=raised.pid, writer=raised.writer)
    said_more = any(event.seq > raised.seq for event in events)
    for event in history.select("rank.exit", attempt=raised.attempt, rank=raised.rank, pid=raised.pid):
        if (order := out_of_order(raised, event)) is not None:
            yield f"rank {raised.rank} had ended before it raised it{order}", places([event, raised])
        elif signal_number(event.data.get("signal")) is not None and not said_more:
            yield f"rank {raised.rank} {exit_status(event)} at the moment of the error", places([event, raised])


def _raised(case: Case) -> Iterator[Doubt]:
    yield from raised_doubts(case.history, case.fault, case.demands, case.landing, case.evidence, case.injection)


RAISED = Proof("the rank's own record of the error", ("raised",), _raised)
