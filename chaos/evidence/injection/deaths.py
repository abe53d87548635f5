"""Part of check ``injection``: proof of a fault that ends its rank's process, by any hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status, signal_name, signal_number
from chaos.evidence.injection.identity import other_process
from chaos.evidence.injection.triggers import Demands, barrier, place_text
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import DEFAULT_CODE, effect_of
from chaos.plan.parts.fault import PlannedFault

ACTING = "fault.acting"
"""The record of a rank just before it does to itself the act that the harness has requested."""

_SIGKILL = 9


@dataclass(frozen=True)
class End:
    """The required end of a process: by a signal or with a code, the other being None."""

    signal: int | None
    code: int | None = None

    def was(self, event: Event) -> bool:
        """Return whether this exit is the required end."""
        return signal_number(event.data.get("signal")) == self.signal and event.data.get("code") == self.code

    def __str__(self) -> str:
        return f"exit code {self.code}" if self.signal is None else signal_name(self.signal)


def required_end(fault: PlannedFault) -> End | None:
    """Return the required end of the process of a rank that this fault hits; None where it need not end by it."""
    effect = effect_of(fault.kind)
    if effect.code is not None:
        code = fault.parameters.get(effect.code, DEFAULT_CODE)
        return End(None, code if isinstance(code, int) else DEFAULT_CODE)
    return None if effect.signal is None else End(effect.signal)


def death_doubts(history: History, fault: PlannedFault, injection: Event) -> Iterator[Doubt]:
    """Yield every reason to doubt the death of one rank. Nothing for faults of another kind."""
    required = required_end(fault)
    if required is None:
        return
    rank, pid = injection.rank, injection.pid
    exits = [event for event in history.select("rank.exit", attempt=injection.attempt, rank=rank) if event.pid == pid]
    if not exits:
        yield f"no exit status of rank {rank} (process {pid})", (injection.source,)
        return
    if not required.was(exits[0]):
        how = f"killed by {required}" if required.signal == _SIGKILL else f"ended with {required}"
        reason = f"rank {rank} {exit_status(exits[0])}, not {how}: the planned fault was not injected"
        yield reason, (exits[0].source,)
    if (doubt := other_process(exits[0], [injection])) is not None:
        yield (
            f"the exit status of rank {rank} is not that of the process that was hit: {doubt}",
            (
                exits[0].source,
                injection.source,
            ),
        )
    if (disorder := out_of_order(injection, exits[0])) is not None:
        yield f"rank {rank} had ended before the injection{disorder}", (exits[0].source, injection.source)


def own_act_doubts(
    history: History, fault: PlannedFault, trigger_demands: Demands, landing: Event, injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt the rank's own record of its coming act."""
    rank = injection.rank
    acts = [event for event in history.select(ACTING, fault=fault.id, rank=rank) if event.pid == injection.pid]
    if not acts:
        yield f"rank {rank}'s own history does not say that it was about to {fault.kind}", (landing.source,)
        return
    act = acts[0]
    if len(acts) > 1 or act.data.get("act") != fault.kind:
        yield f"rank {rank} did {', '.join(str(event.data.get('act')) for event in acts)}", (act.source,)
    point = barrier(act.data.get("step"), act.data.get("phase"))
    if trigger_demands.barriers and point not in trigger_demands.barriers:
        where = place_text(point) if point else "an unknown place"
        yield f"rank {rank} did it at {where}: the planned fault was not injected", (act.source,)
    if (disorder := out_of_order(injection, act)) is not None:
        yield f"rank {rank} did it before it was told to{disorder}", (act.source, injection.source)
    if (disorder := out_of_order(act, landing)) is not None:
        yield f"the landing is recorded before rank {rank} did it{disorder}", (landing.source, act.source)


def death(case: Case) -> Iterator[Doubt]:
    """Yield the reasons to doubt the death in a case."""
    yield from death_doubts(case.history, case.fault, case.injection)
