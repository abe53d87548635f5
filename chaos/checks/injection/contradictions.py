"""Part of check ``injection``: all records of a fault are of one act, of the planned kind.

The harness records the order and the landing, and a rank its own act. Where they contradict each other, or a process
without an order has acted too, nobody knows which act the recovery answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import signal_name, signal_number
from chaos.evidence.injection.deaths import ACTING
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

_BY_THE_RANK = (ACTING, "fault.raised", "fault.altered", "fault.scaled", "fault.slowed", "fault.ended")
"""The records of a process about a fault that it makes in itself."""


def injected_again(injections: list[Event]) -> bool:
    """Return whether a fault was made again: to the same rank, even in a new process, or in another launch."""
    # Beside the ranks there are several processes of no rank.
    targets = [(event.rank, event.pid if event.rank is None else None) for event in injections]
    return len(targets) != len(set(targets)) or len({event.attempt for event in injections}) > 1


def repeated_acts(history: History, fault: PlannedFault) -> list[Event]:
    """Return the records of ranks that did to themselves more than once an act that was ordered once."""
    records = history.select(ACTING, fault=fault.id)
    ranks = [event.rank for event in records]
    return [event for event in records if ranks.count(event.rank) > 1]


def other_act_doubts(
    history: History, fault: PlannedFault, landing: Event, injections: list[Event], signal: int | None
) -> Iterator[Doubt]:
    """Yield every contradiction of one act: order, landing and the ranks' own records must agree on the planned kind.

    ``signal`` is the signal by which a fault of this kind strikes, if there is one.
    """
    for event in (*injections, landing):
        if (kind := event.data.get("kind")) not in (None, fault.kind):
            yield f"it is recorded as a fault of kind {kind}", (event.source,)
    for event in injections:
        if landing.attempt not in (None, event.attempt):
            contradiction = f"it was made in attempt {event.attempt}, and the landing is of attempt {landing.attempt}"
            yield contradiction, (event.source, landing.source)
        sent = signal_number(event.data.get("signal"))
        if None not in (sent, signal) and sent != signal:
            yield f"{signal_name(sent)} was sent, not {signal_name(signal)}", (event.source,)
    if fault.role is not None:
        return
    ordered = {(event.attempt, event.rank, event.pid) for event in injections}
    for name in _BY_THE_RANK:
        for event in history.select(name, fault=fault.id):
            if (event.attempt, event.rank, event.pid) not in ordered:
                contradiction = (
                    f"process {event.pid} of rank {event.rank} did it in attempt {event.attempt} without being told to"
                )
                yield contradiction, (event.source,)
