"""``node-disconnect``: takes a node off the job's network.

Its processes live on, without any packet.

On Ascend: a host without its network.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.behaviours import StillShown
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.nodes.on_node import NEEDS_NODES, SURFACE, make_once, node_ended, node_of, restore_steps
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import SUSPENSION


class NodeDisconnect(StillShown):
    """Takes the node's network away; its processes live on, without any packet."""

    name = "node-disconnect"
    surface = SURFACE
    effect = SUSPENSION
    needs_from_start = NEEDS_NODES

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Connect each node again."""
        return restore_steps(fault, victims, "connect", "connect")

    def inject(self, job: Job, victim: Victim) -> None:
        """Take the node off the network."""
        node = node_of(job, victim)
        make_once(victim, node, _off, node.disconnect)

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node and its network. Raises FaultMissed if the node has ended."""
        shown = node_of(job, victim).shown()
        if shown["status"] != "running":
            raise FaultMissed(f"the node of rank {victim.rank} is {shown['status']}, so more than its network is gone")
        return {"signal": None, "node": shown} if _off(shown) else None

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same: anybody may undo the fault."""
        return self.evidence(job, victim)

    def gone(self, job: Job, victim: Victim) -> bool:
        """Return whether the node has ended."""
        return node_ended(job, victim)


def _off(shown: dict[str, Any]) -> bool:
    return not shown["connected"]


KIND = NodeDisconnect()
