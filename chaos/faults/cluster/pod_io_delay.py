"""``pod-io-delay``: delays each call of a pod on a file of the run's volume.

On Ascend: shared storage that is overloaded or far away.
"""

from __future__ import annotations

from types import MappingProxyType

from chaos.faults.cluster.on_mesh import OnMesh, milliseconds, rights
from chaos.faults.condition import LASTS
from chaos.faults.kind import Victim
from chaos.machine.job.protocol import Job
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kubernetes.chaos_mesh import io_chaos
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import IO_CHAOS
from chaos.platforms.kubernetes.workload import Manifest


class PodIoDelay(OnMesh):
    """Delays the storage of a pod."""

    name = "pod-io-delay"
    resource = IO_CHAOS
    rights = rights(IO_CHAOS)
    parameters = MappingProxyType(
        {
            "latency": Parameter("delay of each call, in ms", least=1, most=1000, required=True),
            **LASTS,
        }
    )

    def manifest(self, name: str, node: PodNode, job: Job, victim: Victim) -> Manifest:
        """Return an IOChaos of the action latency."""
        volume = str(node.cluster["settings"]["volume"]["path"])
        spec = {"delay": milliseconds(victim, "latency")}
        return io_chaos(name, node.run_client.namespace, node.pod.name, volume, "latency", spec)


KIND = PodIoDelay()
"""The kind."""
