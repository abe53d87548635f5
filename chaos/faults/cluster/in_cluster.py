"""The common part of faults of a cluster's objects: the pod of a rank, and the proof that a pod has gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.platforms.kubernetes.client.asking import answer_if_any, ask_with_retries
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.rbac import NODES, Rule
from chaos.platforms.kubernetes.resources import NODE, POD

CHANGES_NODES = Rule(NODE, ("get", "patch"), place=NODES)
REPORTS_NODES = Rule(NODE, ("patch",), "status", place=NODES)
EVICTS = Rule(POD, ("create",), "eviction")
"""The rights that kinds need in a cluster beside every run's (`rights`)."""

NEEDS_CLUSTER = "acts on objects of the cluster that the run itself has made"
RELEASE_NODE, RECOVER_PUBLIC_FAULT = "release-cluster-node", "recover-public-fault"

_SIGKILL = 9


@runtime_checkable
class OnNodes(Protocol):
    """A job whose ranks live on nodes."""

    def node(self, number: int) -> object:
        """Return the node of that number."""


def pod_node(job: Job, victim: Victim) -> PodNode:
    """Return the pod that a rank lives in. Raises FaultMissed where it lives in none."""
    number = victim.identity.node
    node = job.node(number) if isinstance(job, OnNodes) and number is not None else None
    if not isinstance(node, PodNode):
        raise FaultMissed(f"rank {victim.rank} is in no pod: this fault needs the platform kubernetes")
    return node


def host_of(victim: Victim) -> str:
    """Return the cluster's node that a rank's pod is on. Raises FaultMissed where the platform does not say."""
    host = victim.place.get("host")
    if not isinstance(host, str):
        raise FaultMissed(f"the cluster node of rank {victim.rank} is unknown")
    return host


def release_steps(fault: str, victims: list[Victim], what: str) -> list[UndoStep]:
    """Return one undo step for each node of the cluster with a rank of ``victims``."""
    hosts = {host_of(victim): victim for victim in victims if "host" in victim.place}
    return [
        UndoStep(f"{fault}-{host}", fault, RELEASE_NODE, dict(victim.place), f"{what} node {host}")
        for host, victim in sorted(hosts.items())
    ]


def order_once(victim: Victim, node: PodNode, order: Callable[[], bool]) -> None:
    """Order the end of a pod, once for all of its ranks. Raises FaultMissed where another act ends the pod.

    A refused order does not count: the pod's later fate is not by this fault. An order without an answer is given
    again.
    """
    if node.ordered == victim.fault:
        return
    now = node.pods.state(node.pod.uid)
    if now is not None and now.deleting:
        raise FaultMissed(f"the pod of rank {victim.rank} is being deleted already, and not by this fault")
    if not ask_with_retries(order):
        raise FaultMissed(f"the pod of rank {victim.rank} had gone before the cluster took this run's order")
    node.ordered = victim.fault


def pod_gone(job: Job, victim: Victim) -> dict[str, Any] | None:
    """Return the pod, gone by this run's order, and the end of the rank's process with it.

    Raises FaultMissed where the pod or the rank ended in another way.
    """
    node = pod_node(job, victim)
    if answer_if_any(node.state) != "gone":
        return None
    if node.ordered != victim.fault:
        raise FaultMissed(f"the pod of rank {victim.rank} has gone, and not by this run's order")
    status = job.exit_status(victim.identity)
    if status is None:
        return None
    if status.signal != _SIGKILL:
        raise FaultMissed(f"rank {victim.rank} ended with {status}, not by the end of its pod ({status.told_by})")
    node.known = "gone"
    pod = {"name": node.first.pod, "uid": node.first.uid, "host": node.first.host}
    replaced = [
        {"name": state.pod, "uid": state.uid, "host": state.host} for state in node.pods.successors(node.first.uid)
    ]
    told_by = status.told_by or "the kernel, by the remote helper in the pod"
    return {"signal": _SIGKILL, "pod": pod, "replaced": replaced, "told_by": told_by, "by": "this run's order"}
