"""``node-stop``: asks a node to end; after its grace time it ends with everything on it.

The ranks get no signal. The recovery is measured from the node's end on.

On Ascend: a deleted pod whose start script does not pass SIGTERM on.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.kind import Victim
from chaos.faults.nodes.node_end import NodeEnd
from chaos.machine.job.protocol import Job
from chaos.plan.rules.parameters import Parameter

DEFAULT = 2


class NodeStop(NodeEnd):
    """Stops the node with a grace time, which its first process does not use: the ranks get no signal."""

    name = "node-stop"
    parameters = MappingProxyType(
        {"grace": Parameter("seconds from the order to the end", least=0, most=30, whole=True, default=DEFAULT)}
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Stop the node, which takes the grace time."""
        self.end_node(job, victim, lambda node: node.stop(float(victim.parameters.get("grace", DEFAULT))))

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the platform's record of the node's end, and the rank's exit status."""
        return super().evidence(job, victim)


KIND = NodeStop()
"""The kind."""
