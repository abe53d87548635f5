"""``node-kill``: ends a node at once, with everything on it.

The node's first process is killed, by which the kernel ends all others.

On Ascend: a host that loses its power, or a pod that is killed; the cluster starts another one.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import Victim
from chaos.faults.nodes.node_end import NodeEnd
from chaos.machine.job.protocol import Job


class NodeKill(NodeEnd):
    """Kills the node's first process, by which the kernel ends all others."""

    name = "node-kill"

    def inject(self, job: Job, victim: Victim) -> None:
        """End the node."""
        self.end_node(job, victim, lambda node: node.kill())

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node, and the exit status of the rank's process."""
        evidence = super().evidence(job, victim)
        if evidence is not None:
            evidence["told_by"] = evidence["told_by"] or "the kernel, by the remote helper"
        return evidence


KIND = NodeKill()
