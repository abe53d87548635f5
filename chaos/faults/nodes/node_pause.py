"""``node-pause``: freezes everything on a node.

Connections stay, and no process answers.

On Ascend: a host that hangs.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.behaviours import StillShown
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, make_once, node_ended, node_of, restore_steps
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import SUSPENSION


class NodePause(StillShown):
    """Freezes the node's processes; connections stay, and no process answers."""

    name = "node-pause"
    surface = SURFACE
    effect = SUSPENSION
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Let each node go on."""
        return restore_steps(fault, victims, "unpause", "let go on")

    def inject(self, job: Job, victim: Victim) -> None:
        """Freeze the node."""
        node = node_of(job, victim)
        make_once(victim, node, _paused, node.pause)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node. Raises FaultMissed if the node has ended."""
        shown = node_of(job, victim).shown()
        if shown["status"] == "exited":
            raise FaultMissed(f"the node of rank {victim.rank} has ended before it could be paused")
        return {"signal": None, "node": shown} if _paused(shown) else None

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same: anybody may undo the fault."""
        return self.evidence(job, victim)

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the node has ended."""
        return node_ended(job, victim)


def _paused(shown: dict[str, Any]) -> bool:
    return bool(shown["status"] == "paused")


KIND = NodePause()
