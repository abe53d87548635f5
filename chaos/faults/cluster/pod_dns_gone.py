"""``pod-dns-gone``: stops name resolution in a pod; addresses are reached as before.

Chaos Mesh needs its DNS server.

On Ascend: CoreDNS does not answer.
"""

from __future__ import annotations

from chaos.faults.cluster.on_mesh import OnMesh, rights
from chaos.faults.condition import LASTS
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.platforms.kubernetes.chaos_mesh import dns_chaos
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import DNS_CHAOS
from chaos.platforms.kubernetes.workload import Manifest


class PodDnsGone(OnMesh):
    """Takes the resolution of names from a pod."""

    name = "pod-dns-gone"
    resource = DNS_CHAOS
    rights = rights(DNS_CHAOS)
    parameters = LASTS

    def manifest(self, name: str, node: PodNode, job: Job, victim: Victim) -> Manifest:
        """Return a DNSChaos of the action error, for every name."""
        del job, victim
        return dns_chaos(name, node.run_client.namespace, node.pod.name, "error")


KIND = PodDnsGone()
"""The kind."""
