"""``node-restart``: ends a node with everything on it, and starts it again at once, empty.

Only the cluster starts its ranks there again.

On Ascend: a container that its runtime restarts, or a fast reboot.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.kind import Victim
from chaos.faults.nodes.node_end import NodeEnd
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job


class NodeRestart(NodeEnd):
    """Restarts the node, whose ranks are gone; only the cluster starts them there again."""

    name = "node-restart"

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a death cannot be put back, and the node runs."""
        return super().undo_steps(fault, victims)

    def inject(self, job: Job, victim: Victim) -> None:
        """Restart the node."""
        self.end_node(job, victim, lambda node: node.restart())

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node's new start, and the rank's exit status."""
        return super().evidence(job, victim)

    def is_made(self, shown: dict[str, Any]) -> bool:
        """Return whether the platform's record shows a node that was started again after the launch."""
        return bool(shown["status"] == "running" and shown["restarted"])

    def require_kill(self, shown: dict[str, Any], victim: Victim) -> None:
        """Require nothing: the record of a node that runs again does not say how it ended."""


KIND = NodeRestart()
"""The kind."""
