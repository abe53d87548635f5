"""The ranks on which the SDK calls each of MindSpore's handlers in a recovery, and the faults made there.

``TrainFaultTolerance`` (MindSpore 2.10) registers no handler for ``rollback``; the new process of a lost rank registers
its own only when the others have rebuilt their groups. MindIO TFT chooses the giver of a state: the next rank of the
replica group, in a circle. Source: observation (docs/design/conformance.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from chaos.plan.describe import ranks
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Context
from chaos.plan.schedule import Scheduled

_WHO: Mapping[str, str] = {
    "stop": "those that live on",
    "clean": "those that live on",
    "rebuild_group": "those that live on",
    "repair": "those that get a state, and the next of their replica groups that have one",
    "save_ckpt": "the lowest that is left of each replica group",
    "rename": "the last of those that save",
}


def sharing(groups: Sequence[tuple[int, ...]], broken: Collection[int]) -> tuple[int, ...]:
    """Return the ranks that get a state and their givers: for each broken rank the next sound one of its group."""
    sharers: set[int] = set()
    for members in groups:
        for place, rank in enumerate(members):
            if rank in broken:
                others = (*members[place + 1 :], *members[:place])
                sharers.update((rank, next((other for other in others if other not in broken), rank)))
    return tuple(sorted(sharers))


def spoilers(
    context: Context,
    incident: Incident,
    mechanism: str,
    entered: Mapping[str, tuple[int, ...]],
    *,
    apart_from: Collection[int] = (),
) -> tuple[Scheduled, ...]:
    """Return the faults because of which a recovery fails: all faults at the first handler with a fault.

    The recovery comes to no later handler. Notes faults at that handler whose ranks do not enter it.

    Args:
        context: the known facts of the scenario.
        incident: the incident that the recovery answers.
        mechanism: the mechanism that acts.
        entered: the ranks on which each handler is called, in calling order; no ranks where it is not called.
        apart_from: ranks with another noted problem.
    """
    for handler, who in entered.items():
        faults = tuple(fault for fault in incident.inside if fault.handler == handler)
        if not faults or not who:
            continue
        for fault in faults:
            missing = [rank for rank in fault.fault.ranks if rank not in who and rank not in apart_from]
            if missing:
                _note(context, incident, mechanism, fault, who, missing)
        return faults
    return ()


def _note(
    context: Context,
    incident: Incident,
    mechanism: str,
    fault: Scheduled,
    who: Sequence[int],
    missing: Sequence[int],
) -> None:
    handler = fault.handler or ""
    possible = [rank for rank in who if not (fault.lethal and rank in incident.hit)]
    context.problems.add(
        f"{fault.path}.target",
        f"fault {fault.fault.id!r} is never reached on {ranks(missing)}: when {mechanism} answers fault "
        f"{incident.first.fault.id!r} ({context.problems.where(incident.first.path)}), the SDK calls handler {handler} "
        f"on {ranks(who)} only ({_WHO[handler]})",
        text=f"rank {missing[0]}",
        hint=f"target {ranks(possible)}" if possible else "use another handler",
    )
