"""The required evidence of a fault that takes away a rank's saves."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.history.event import Event
from chaos.observe.checkpoints.registered import file_endings
from chaos.plan.parts.fault import PlannedFault


def lost_files_doubts(
    fault: PlannedFault, landing: Event, evidence: dict[str, object]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every reason to doubt the loss at one rank, with where to look. None for faults with another effect."""
    if fault.effect.damages != "files":
        return
    rank, removed = evidence.get("rank"), evidence.get("removed")
    if evidence.get("directory") != f"rank_{rank}":
        yield f"the evidence is of directory {evidence.get('directory')}, not of rank {rank}'s", (landing.source,)
    if not isinstance(removed, list) or not any(str(name).endswith(file_endings()) for name in removed):
        yield f"the evidence names no checkpoint that rank {rank} has lost", (landing.source,)
