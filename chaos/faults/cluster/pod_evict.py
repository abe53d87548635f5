"""``pod-evict``: evicts a pod through the API, as a drain does.

The target must be a whole node (``node: N``). Missed where a disruption budget forbids it.

On Ascend: ``kubectl drain`` of the node.
"""

from __future__ import annotations

from chaos.faults.cluster.in_cluster import EVICTS
from chaos.faults.cluster.pod_end import PodEnd
from chaos.faults.kind import FaultMissed
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.rbac import Rule


class PodEvict(PodEnd):
    """Evicts the pod."""

    name = "pod-evict"
    rights: tuple[Rule, ...] = (EVICTS,)

    def order(self, node: PodNode) -> bool:
        """Evict it. Raises FaultMissed where a disruption budget forbids the eviction."""
        try:
            return node.run_client.evict(node.pod)
        except ApiError as error:
            if error.status == 429:
                raise FaultMissed(f"a disruption budget forbids the eviction: {error}") from error
            raise


KIND = PodEvict()
"""The kind."""
