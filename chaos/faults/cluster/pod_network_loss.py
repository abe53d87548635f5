"""``pod-network-loss``: drops a share of a pod's packets to the other pods of the run; TCP sends them again.

On Ascend: a bad cable or port in the host network.
"""

from __future__ import annotations

from types import MappingProxyType

from chaos.faults.cluster.on_mesh import OnMesh, other_pods, rights
from chaos.faults.condition import LASTS
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kubernetes.chaos_mesh import network_chaos
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import NETWORK_CHAOS
from chaos.platforms.kubernetes.workload import Manifest


class PodNetworkLoss(OnMesh):
    """Loses packets."""

    name = "pod-network-loss"
    resource = NETWORK_CHAOS
    rights = rights(NETWORK_CHAOS)
    parameters = MappingProxyType(
        {
            "percent": Parameter("percentage of packets", least=0.1, most=50, required=True),
            **LASTS,
        }
    )

    def manifest(self, name: str, node: PodNode, job: Job, victim: Victim) -> Manifest:
        """Return a NetworkChaos of the action loss."""
        spec = {"loss": {"loss": f"{victim.parameters['percent']:g}"}}
        return network_chaos(name, node.run_client.namespace, node.pod.name, "loss", spec, others=other_pods(job, node))


KIND = PodNetworkLoss()
"""The kind."""
