"""Part of check ``injection``: proof that a rank hung, for ever or for as long as the scenario says.

The proof is the rank's own record that it begins to wait, and the silence afterwards: its training goes through no
further point, and where the interpreter's lock is held the whole process writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status
from chaos.evidence.injection.deaths import ACTING, own_act_doubts
from chaos.evidence.injection.triggers import Demands
from chaos.evidence.order import out_of_order
from chaos.faults.rank_acts.plan_hangs import DELAYS, HOLDS_LOCK, SECONDS
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

KINDS = DELAYS
ENDED = "fault.ended"
_WITNESS, _TICKS = "fault.witness", 3
_OF_TRAINING = (
    "step.begin",
    "step.end",
    "digest",
    "barrier.reached",
    "barrier.released",
    "checkpoint.begin",
    "train.end",
)
"""Events of the thread that trains."""


def hung_doubts(
    history: History, fault: PlannedFault, demands: Demands, landing: Event, injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt a hang of the rank of ``injection``. None for faults of another kind."""
    if fault.kind not in KINDS:
        return
    yield from own_act_doubts(history, fault, demands, landing, injection)
    rank, pid = injection.rank, injection.pid
    events = history.select(attempt=injection.attempt, rank=rank, pid=pid, writer="agent")
    act = next((event for event in events if event.event == ACTING and event.data.get("fault") == fault.id), None)
    if act is None:
        return
    if fault.kind == HOLDS_LOCK:
        ticks = [event for event in events if event.event == _WITNESS and event.seq < act.seq]
        if len(ticks) < _TICKS:
            yield f"rank {rank} had no witness of its lock, so its silence proves nothing", (act.source,)
    seconds = fault.parameters.get(SECONDS)
    until = None
    if isinstance(seconds, (int, float)):
        ended = next((event for event in events if event.event == ENDED and event.data.get("fault") == fault.id), None)
        if ended is None:
            yield f"rank {rank} has not recorded that it goes on after {seconds:g} s", (act.source,)
        elif ended.mono - act.mono < seconds * 1e9:
            yield f"rank {rank} waited {(ended.mono - act.mono) / 1e9:.3f} s, not {seconds:g} s", (ended.source,)
        until = act.mono + int(seconds * 1e9)
    later = [event for event in events if event.seq > act.seq and (until is None or event.mono < until)]
    if fault.kind != HOLDS_LOCK:
        later = [event for event in later if event.event in _OF_TRAINING]
    if later:
        yield (
            f"rank {rank} went on meanwhile: {later[0].event} (and {len(later) - 1} more)",
            (later[0].source, act.source),
        )
    for event in history.select("rank.exit", attempt=injection.attempt, rank=rank, pid=pid):
        if (order := out_of_order(landing, event)) is not None:
            yield f"rank {rank} {exit_status(event)}, so it did not hang{order}", (event.source, landing.source)
