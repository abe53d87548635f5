"""``pod-network-delay``: delays a pod's packets to the other pods of the run.

On Ascend: an overloaded switch of the host network.
"""

from __future__ import annotations

from types import MappingProxyType

from chaos.faults.cluster.on_mesh import OnMesh, milliseconds, other_pods, rights
from chaos.faults.condition import LASTS
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kubernetes.chaos_mesh import network_chaos
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import NETWORK_CHAOS
from chaos.platforms.kubernetes.workload import Manifest


class PodNetworkDelay(OnMesh):
    """Delays the network."""

    name = "pod-network-delay"
    resource = NETWORK_CHAOS
    rights = rights(NETWORK_CHAOS)
    parameters = MappingProxyType(
        {
            "latency": Parameter("delay of each packet, in ms", least=1, most=1000, required=True),
            "jitter": Parameter("how much more or less, in ms", least=0, most=1000, default=0),
            **LASTS,
        }
    )

    def manifest(self, name: str, node: PodNode, job: Job, victim: Victim) -> Manifest:
        """Return a NetworkChaos of the action delay."""
        spec = {"latency": milliseconds(victim, "latency"), "jitter": f"{victim.parameters.get('jitter', 0)}ms"}
        others = other_pods(job, node)
        return network_chaos(name, node.run_client.namespace, node.pod.name, "delay", {"delay": spec}, others=others)


KIND = PodNetworkDelay()
"""The kind."""
