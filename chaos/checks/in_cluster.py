"""Part of check ``injection``: what proves a fault of a cluster's objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.checks.raised import Doubt
from chaos.history.event import Event
from chaos.plan.model import PlannedFault

TAKE_PODS = frozenset({"pod-delete", "pod-evict", "node-drain"})
"""Kinds that end a pod, and by SIGKILL all that runs in it."""

NOT_READY = "node-not-ready"
_TAINT = "node.kubernetes.io/not-ready"

PROOFS: Mapping[str, str] = {
    **dict.fromkeys(TAKE_PODS, "the end of the pod by its UID, exit status"),
    NOT_READY: "the taint by the cluster's controller",
}
"""What the evidence of a kind is, in words."""


def cluster_doubts(fault: PlannedFault, landing: Event, evidence: dict[str, object]) -> Iterator[Doubt]:
    """What speaks against a fault of a cluster at one rank. Nothing for faults of another kind."""
    rank = evidence.get("rank")
    if fault.kind in TAKE_PODS:
        pod = evidence.get("pod")
        if not isinstance(pod, dict) or not pod.get("uid"):
            yield f"which pod rank {rank} was in is not in the evidence", (landing.source,)
        if not evidence.get("told_by") or not evidence.get("by"):
            yield f"nobody says how the pod of rank {rank} went, or by whose act", (landing.source,)
    if fault.kind == "node-drain" and evidence.get("unschedulable") is not True:
        yield f"the node of rank {rank} is not known to have been cordoned", (landing.source,)
    taints = evidence.get("taints")
    if fault.kind == NOT_READY and not (isinstance(taints, list) and _TAINT in taints):
        yield f"the cluster is not known to have taken the node of rank {rank} for not ready", (landing.source,)
