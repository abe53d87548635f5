"""Part of check ``injection``: proof that a rank was slow, in as many steps and by as much as the scenario says.

The proof is the rank's own record of each step's duration and of the wait after it, and the times of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import places
from chaos.evidence.injection.deaths import own_act_doubts
from chaos.evidence.injection.triggers import Demands
from chaos.faults.rank_acts.plan_hangs import SLOW
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

SLOWED = "fault.slowed"
_ROUNDED = 1e-6
"""Seconds to which both times are recorded."""


def slowed_doubts(
    history: History, fault: PlannedFault, demands: Demands, landing: Event, injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt a slow rank of ``injection``. None for faults of another kind."""
    if fault.kind != SLOW:
        return
    yield from own_act_doubts(history, fault, demands, landing, injection)
    rank, pid = injection.rank, injection.pid
    factor, steps = fault.parameters.get("factor"), fault.parameters.get("steps", 1)
    records = [event for event in history.select(SLOWED, fault=fault.id, rank=rank) if event.pid == pid]
    if len(records) != steps:
        yield f"rank {rank} was slow in {len(records)} steps, not in {steps}", (landing.source, *places(records))
    begun = history.select("step.begin", attempt=injection.attempt, rank=rank, pid=pid)
    ended = history.select("step.end", attempt=injection.attempt, rank=rank, pid=pid)
    for fact in records:
        took, waited = fact.data.get("own"), fact.data.get("waited")
        if (
            not isinstance(took, (int, float))
            or not isinstance(waited, (int, float))
            or not isinstance(factor, (int, float))
        ):
            yield f"rank {rank} has not recorded how long it waited", (fact.source,)
            continue
        if waited + _ROUNDED * factor < took * (factor - 1):
            text = f"rank {rank} waited {waited:g} s after a step of {took:g} s, less than factor {factor:g}"
            yield text, (fact.source,)
        end = next((event for event in reversed(ended) if event.seq < fact.seq), None)
        following = next((event for event in begun if event.seq > fact.seq), None)
        if end is None or following is None or following.mono - end.mono < waited * 1e9:
            yield f"rank {rank}'s steps do not show that it waited after step {fact.data.get('step')}", (fact.source,)
