"""``pod-network-partition``: drops all traffic between a pod and the other pods of the run.

On Ascend: a switch that drops everything for a moment.
"""

from __future__ import annotations

from types import MappingProxyType

from chaos.faults.cluster.on_mesh import OnMesh, other_pods, rights
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kubernetes.chaos_mesh import network_chaos
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import NETWORK_CHAOS
from chaos.platforms.kubernetes.workload import Manifest


class PodNetworkPartition(OnMesh):
    """Parts the network."""

    name = "pod-network-partition"
    resource = NETWORK_CHAOS
    rights = rights(NETWORK_CHAOS)
    parameters = MappingProxyType(
        {
            "seconds": Parameter(
                "how long, in seconds; after longer MindIO TFT takes ranks for lost",
                least=0.1,
                most=2,
                required=True,
            ),
            "direction": Parameter("what is lost", words=("both", "to", "from"), default="both"),
        }
    )

    def manifest(self, name: str, node: PodNode, job: Job, victim: Victim) -> Manifest:
        """Return a NetworkChaos of the action partition."""
        direction = str(victim.parameters.get("direction", "both"))
        others = other_pods(job, node)
        place = (name, node.run_client.namespace, node.pod.name)
        return network_chaos(*place, "partition", {}, others=others, direction=direction)


KIND = PodNetworkPartition()
"""The kind."""
