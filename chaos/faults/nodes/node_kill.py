"""``node-kill``: ends a node at once, with everything on it.

On Ascend: a host without power, or a killed pod.
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
        """Return the platform's record of the node's end, and the rank's exit status."""
        evidence = super().evidence(job, victim)
        if evidence is not None:
            evidence["told_by"] = evidence["told_by"] or "the kernel, by the remote helper"
        return evidence


KIND = NodeKill()
