"""Part of check ``injection``: what proves a fault of a cluster's objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.checks.raised import Doubt
from chaos.history.event import Event
from chaos.plan.model import PlannedFault

TAKE_PODS = frozenset({"pod-delete", "pod-evict", "node-drain"})
"""Kinds that end a pod, and by SIGKILL all that runs in it."""

CORDON, NOT_READY, PUBLIC = "node-cordon", "node-not-ready", "public-fault"
_TAINT = "node.kubernetes.io/not-ready"

PROOFS: Mapping[str, str] = {
    **dict.fromkeys(TAKE_PODS, "the end of the pod by its UID, exit status"),
    CORDON: "the node's own object",
    NOT_READY: "the taint by the cluster's controller",
    PUBLIC: "ClusterD's own list of public faults",
}
"""What the evidence of a kind is, in words."""


def cluster_doubts(fault: PlannedFault, landing: Event, evidence: dict[str, object]) -> Iterator[Doubt]:
    """What speaks against a fault of a cluster at one rank. Nothing for faults of another kind."""
    rank = evidence.get("rank")
    if fault.kind in TAKE_PODS:
        pod = evidence.get("pod")
        if not isinstance(pod, dict) or not pod.get("uid"):
            yield f"which pod rank {rank} was in is not in the evidence", (landing.source,)
    if fault.kind in (CORDON, "node-drain") and evidence.get("unschedulable") is not True:
        yield f"the node of rank {rank} is not known to have been cordoned", (landing.source,)
    taints = evidence.get("taints")
    if fault.kind == NOT_READY and not (isinstance(taints, list) and _TAINT in taints):
        yield f"the cluster is not known to have taken the node of rank {rank} for not ready", (landing.source,)
    if fault.kind == PUBLIC and not evidence.get("fault id"):
        yield f"ClusterD is not known to hold the fault of the node of rank {rank}", (landing.source,)
