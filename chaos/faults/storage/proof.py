"""Part of check ``injection``: what proves faults that neither end a process nor raise an error in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status, signal_name, signal_number
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import PlannedFault

REFUSALS: Mapping[str, tuple[str, ...]] = {
    "disk-full": ("ENOSPC",),
    "read-only": ("EROFS",),
    "io-error": ("EIO",),
    "storage-gone": ("ENOENT",),
    "node-volume-gone": ("ENOENT",),
    "no-permission": ("EPERM", "EACCES"),
}
"""Storage faults, and the errors with one of which the kernel must have refused a file."""

DAMAGES = (
    *("truncate-checkpoint", "flip-checkpoint", "stale-checkpoint", "remove-checkpoint"),
    "damage-record",
    "partial-checkpoint",
)
"""Faults that give a checkpoint, or the record of it, another content where it was saved."""

TERMINATE = "terminate"
RESET = "connection-reset"
SIGTERM = 15


def storage_doubts(fault: PlannedFault, landing: Event, evidence: dict[str, object]) -> Iterator[Doubt]:
    """Yield every reason to doubt that the storage fault hit this rank; nothing for faults of another kind."""
    wanted = REFUSALS.get(fault.kind)
    if wanted is None:
        return
    rank, refused = evidence.get("rank"), evidence.get("refused")
    if refused not in wanted:
        seen = f"where rank {rank} saves the kernel refused a file with {refused}, not with {' or '.join(wanted)}"
        yield seen, (landing.source,)
    if fault.kind == "no-permission" and not evidence.get("directory"):
        yield f"what has become of the directory of rank {rank} is not in the evidence", (landing.source,)
    elif fault.kind != "no-permission" and not evidence.get("mount"):
        yield f"what rank {rank} sees mounted is not in the evidence", (landing.source,)


def reset_doubts(fault: PlannedFault, landing: Event, evidence: dict[str, object]) -> Iterator[Doubt]:
    """What speaks against the reset of connections of one rank's node. Nothing for faults of another kind."""
    if fault.kind != RESET:
        return
    rank, listed, wanted = evidence.get("rank"), evidence.get("reset"), fault.parameters.get("port")
    port = evidence.get("port")
    if not isinstance(port, int) or (isinstance(wanted, int) and port != wanted):
        yield f"the evidence for rank {rank} is of port {port}, and {wanted} was meant", (landing.source,)
    told = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    if not told:
        yield f"the connections of the node of rank {rank} that were reset are not in the evidence", (landing.source,)
    for one in told:
        if one.get("confirmed") is not True or not one.get("cookie") or not one.get("other cookie"):
            yield f"nothing shows that both ends of a connection of rank {rank}'s node were reset", (landing.source,)
        elif port not in (one.get("source_port"), one.get("target_port")):
            yield f"a connection of rank {rank}'s node was reset that has no end at port {port}", (landing.source,)
    if evidence.get("left") != 0:
        yield f"of the connections of rank {rank}'s node {evidence.get('left')} were left", (landing.source,)


def termination_doubts(
    history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object], injection: Event
) -> Iterator[Doubt]:
    """What speaks against the delivery of SIGTERM to one rank. Nothing for faults of another kind.

    A process that was ended by it has an exit status that says so. One that has a handler lives on, and its own record
    goes on; a handler may also end it in its own way.
    """
    if fault.kind != TERMINATE:
        return
    rank, pid = injection.rank, injection.pid
    exits = [one for one in history.select("rank.exit", attempt=injection.attempt, rank=rank) if one.pid == pid]
    if evidence.get("caught") is True:
        if evidence.get("pending") is not False:
            yield f"the signal still waited at rank {rank}", (landing.source,)
        own = history.select(attempt=injection.attempt, rank=rank, pid=pid, writer="agent")
        if not exits and not any(injection.surely_before(one) for one in own):
            yield f"rank {rank} neither recorded anything after the signal nor ended", (landing.source,)
        return
    if not exits:
        yield f"rank {rank} has no handler for the signal, and no exit status", (landing.source,)
    for one in exits:
        if signal_number(one.data.get("signal")) != SIGTERM:
            yield f"rank {rank} {exit_status(one)}, not ended by {signal_name(SIGTERM)}", (one.source, landing.source)
