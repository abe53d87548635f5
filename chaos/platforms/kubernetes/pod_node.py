"""One pod of a run as a node of its scenario: whether it runs, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.machine.linux.children import ExitStatus
from chaos.machine.remote.client import HelperClient
from chaos.platforms.kubernetes.facts import PodState, pod_state
from chaos.platforms.kubernetes.own import Found, Own
from chaos.platforms.kubernetes.pods import Pods
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.nodes import NodeState

if TYPE_CHECKING:
    from chaos.platforms.network.links import NodeNetwork

_SIGKILL = 9
_ENDED = ("Failed", "Succeeded")
_NOT_SEEN = ("OOMKilled", "ContainerStatusUnknown")
"""What a kubelet gives as the reason where it cannot be told how what ran in the container ended: the kernel may have
ended a rank by itself for want of memory before, or the kubelet has found nothing of the container any more."""


@dataclass
class PodNode:
    """One node of a run: a pod. When the pod is replaced, another object takes its place.

    ``first`` is what the pod was when the run began to use it, ``ordered`` the fault that has ordered its end.
    """

    number: int
    pod: Found
    first: PodState
    address: str
    private: Path
    helper: HelperClient
    own: Own
    pods: Pods
    cluster: Mapping[str, Any]
    known: NodeState = field(default="running", init=False)
    ordered: str | None = field(default=None, init=False)
    node_network: NodeNetwork | None = field(default=None, init=False)

    @property
    def place(self) -> dict[str, Any]:
        """What an undo step has to know: how its cluster is reached, the node there that it is on, and the run."""
        return {**self.cluster, "host": self.first.host, "run": self.own.run}

    def state(self) -> NodeState:
        """``gone`` when the cluster no longer has this very pod, or its container has ended."""
        found = self.own.find(POD, self.pod.name)
        if found is None or found.uid != self.pod.uid:
            return "gone"
        now = pod_state(found.object)
        return "gone" if now.phase in _ENDED or now.restarts > self.first.restarts else "running"

    def ended(self) -> ExitStatus | None:
        """SIGKILL: what is left in a container when its first process ends is killed by the kernel.

        That it ended is the word of the pod's node alone: its kubelet writes the end of the container into the pod's
        status before it lets the object go. An object that goes without that was taken away by somebody else, and what
        ran in it may live on a node that is cut off; then nothing is known. None while the end of the pod has not been
        told to those who follow it.
        """
        last, name = self.pods.state(self.pod.uid), self.pod.name
        if last is None:
            return ExitStatus(told_by=f"nobody: the cluster has never shown pod {name}")
        if last.restarts > self.first.restarts + 1:
            return ExitStatus(told_by=f"nobody: pod {name} was started again more than once since")
        again = last.restarts > self.first.restarts
        code, reason = (last.exit_before, last.reason_before) if again else (last.exit, last.reason)
        if code is not None:
            told = f"the cluster: pod {name} ({self.pod.uid}): exit code {code}, {reason}"
            return ExitStatus(signal=None if reason in _NOT_SEEN else _SIGKILL, told_by=told)
        if self.pods.is_there(self.pod.uid) and last.phase not in _ENDED and not again and self.pods.lost is None:
            return None
        return ExitStatus(told_by=f"nobody: pod {name} went, and its node had not told the end of its container")
