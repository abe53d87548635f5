"""``pod-delete``: deletes a pod with all of its ranks; the cluster makes another in its place.

The target must be a whole node (``node: N``). The new pod may be on another node (``pod.rescheduled``).

On Ascend: a rescheduling by MindCluster.
"""

from __future__ import annotations

from chaos.faults.cluster.pod_end import PodEnd
from chaos.platforms.kubernetes.pod_node import PodNode

GRACE_SECONDS = 1
"""More than 0: with 0 a cluster forgets the pod before its node has confirmed that it ended."""


class PodDelete(PodEnd):
    """Deletes the pod, by its UID."""

    name = "pod-delete"

    def order(self, node: PodNode) -> bool:
        """Delete it."""
        return node.run_client.delete(node.pod, grace_seconds=GRACE_SECONDS)


KIND = PodDelete()
"""The kind."""
