"""One pod of a run as a node of its scenario: whether it runs, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.machine.linux.children import ExitStatus
from chaos.machine.remote.client import HelperClient
from chaos.platforms.kubernetes.facts import PodState, pod_state
from chaos.platforms.kubernetes.pods import Pods
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.kubernetes.run_client import RunClient, RunObject
from chaos.platforms.nodes import NodeState

if TYPE_CHECKING:
    from chaos.platforms.network.links import NodeNetwork

_SIGKILL = 9
_ENDED = ("Failed", "Succeeded")
_END_UNKNOWN = ("OOMKilled", "ContainerStatusUnknown")
"""A kubelet's reasons where it cannot know how the processes in the container ended.

The kernel may have ended a rank by itself for lack of memory before, or the kubelet finds nothing of the container any
more.
"""


@dataclass
class PodNode:
    """One node of a run: a pod. When the pod is replaced, another object takes its place.

    ``first`` is the pod's state when the run began to use it, ``ordered`` the fault that has ordered its end.
    """

    number: int
    pod: RunObject
    first: PodState
    address: str
    private: Path
    helper: HelperClient
    run_client: RunClient
    pods: Pods
    cluster: Mapping[str, Any]
    known: NodeState = field(default="running", init=False)
    ordered: str | None = field(default=None, init=False)
    node_network: NodeNetwork | None = field(default=None, init=False)

    @property
    def place(self) -> dict[str, Any]:
        """The place for undo steps: the access to its cluster, its node there, and the run."""
        return {**self.cluster, "host": self.first.host, "run": self.run_client.run}

    def state(self) -> NodeState:
        """Return ``gone`` when the cluster no longer has exactly this pod, or its container has ended."""
        current = self.run_client.find(POD, self.pod.name)
        if current is None or current.uid != self.pod.uid:
            return "gone"
        now = pod_state(current.object)
        return "gone" if now.phase in _ENDED or now.restarts > self.first.restarts else "running"

    def ended(self) -> ExitStatus | None:
        """Return SIGKILL: when a container's first process ends, the kernel kills the rest.

        Only the pod's node proves the end: its kubelet writes the end of the container into the pod's status before it
        releases the object. An object that goes without such a status was removed by somebody else, and its processes
        may live on a node that is cut off; then the status is unknown. None until the watch of the pod has received its
        end.
        """
        last, name = self.pods.state(self.pod.uid), self.pod.name
        if last is None:
            return ExitStatus(told_by=f"nobody: the cluster has never shown pod {name}")
        if last.restarts > self.first.restarts + 1:
            return ExitStatus(told_by=f"nobody: pod {name} was started again more than once since")
        again = last.restarts > self.first.restarts
        code, reason = (last.exit_before, last.reason_before) if again else (last.exit, last.reason)
        if code is not None:
            statement = f"the cluster: pod {name} ({self.pod.uid}): exit code {code}, {reason}"
            return ExitStatus(signal=None if reason in _END_UNKNOWN else _SIGKILL, told_by=statement)
        if self.pods.is_there(self.pod.uid) and last.phase not in _ENDED and not again and self.pods.lost is None:
            return None
        return ExitStatus(told_by=f"nobody: pod {name} went, and its node had not reported the end of its container")
