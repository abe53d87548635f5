"""Proofs of faults of a cluster's objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.evidence.doubt import Doubt
from chaos.evidence.fields import Fields
from chaos.evidence.injection.conditions import Condition, condition, is_text, is_true
from chaos.evidence.injection.deaths import death
from chaos.evidence.injection.fault_nodes import first_act, nodes_of
from chaos.evidence.pods import ends_of, placed_at
from chaos.evidence.proof import Case, Proof, all_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.history.writer import POD_WRITER
from chaos.plan.parts.fault import PlannedFault

_DRAIN = "node-drain"
_TAKE_PODS = frozenset({"pod-delete", "pod-evict", _DRAIN})
"""Kinds that end a pod, and every process in it by SIGKILL."""

_NOT_READY = "node-not-ready"
_TAINT = "node.kubernetes.io/not-ready"


def cluster_doubts(
    history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object], injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt a fault of a cluster at one rank. None for faults of another kind."""
    rank = evidence.get("rank")
    if fault.kind in _TAKE_PODS:
        pod = evidence.get("pod")
        if not isinstance(pod, dict) or not pod.get("uid"):
            yield f"which pod rank {rank} was in is not in the evidence", (landing.source,)
        else:
            yield from _not_that_pod(history, fault, landing, str(pod["uid"]), injection)
        if not evidence.get("told_by") or not evidence.get("by"):
            yield f"how the pod of rank {rank} went, and what removed it, is not recorded", (landing.source,)
    if fault.kind == _DRAIN and evidence.get("unschedulable") is not True:
        yield f"the node of rank {rank} is not known to have been cordoned", (landing.source,)
    taints = evidence.get("taints")
    if fault.kind == _NOT_READY and not (isinstance(taints, list) and _TAINT in taints):
        yield f"the cluster is not known to have taken the node of rank {rank} for not ready", (landing.source,)


def _not_that_pod(history: History, fault: PlannedFault, landing: Event, uid: str, injection: Event) -> Iterator[Doubt]:
    """Yield a doubt unless the cluster's record shows the rank in the evidence's pod, and the pod's end after the act.

    The record is the harness's, on its own clock. A pod that somebody else deletes is going before the act.
    """
    pod_events = [
        event for node in nodes_of(history, injection) for event in history.select(writer=POD_WRITER, node=node)
    ]
    act, rank = first_act(history, fault, injection), injection.rank
    placed = placed_at(pod_events, act.mono)
    if placed is None:
        yield f"the cluster's record does not show which pod rank {rank} was in", (landing.source,)
        return
    if placed.data.get("uid") != uid:
        text = f"rank {rank} was in pod {placed.data.get('uid')}, and the evidence is of pod {uid}"
        yield text, (placed.source, landing.source)
        return
    ends = list(ends_of(event for event in pod_events if event.data.get("uid") == uid))
    if not ends:
        yield f"the cluster's record does not show that the pod of rank {rank} went", (placed.source, landing.source)
    elif ends[0].mono < act.mono:
        yield f"the pod of rank {rank} was going before this run had it deleted", (ends[0].source, act.source)


_POD_FIELDS = ("pod", "told_by", "by")
_POD_ENDED = "the end of the pod by its UID, exit status"


def _of_cluster(case: Case) -> Iterator[Doubt]:
    yield from cluster_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def _is_injected(parameters: Fields, evidence: Fields) -> str | None:
    """Return the doubt about the object, the intended pod by its UID, or the records of the pod; None without one."""
    del parameters
    pod, records = evidence.get("pod"), evidence.get("injected")
    if not (isinstance(pod, Mapping) and pod.get("name") and pod.get("uid")) or not evidence.get("uid"):
        return f"pod is {pod}, of object {evidence.get('uid')}"
    if not isinstance(records, list) or not records:
        return f"the records that it was made in are {records}"
    other_records = [record for record in records if str(record).split("/")[1:2] != [pod["name"]]]
    return f"it was made in {other_records}, and not in pod {pod['name']}" if other_records else None


POD_ENDED = Proof(_POD_ENDED, _POD_FIELDS, all_of(death, _of_cluster))
DRAIN = Proof(f"{_POD_ENDED}, and the cordon of its node", (*_POD_FIELDS, "unschedulable"), all_of(death, _of_cluster))
NOT_READY = Proof("the taint by the cluster's controller", ("taints",), _of_cluster)
MESH = condition(
    Condition(
        _is_injected,
        unchanged=("uid", "pod"),
        taken="another client may have deleted its object, or Chaos Mesh gave up",
    ),
    "Chaos Mesh's word, in the status of its object",
    ("uid", "pod", "injected"),
)
CORDON = condition(
    Condition(is_true("unschedulable"), unchanged=("host",), taken="another client may have uncordoned the node"),
    "the node's own object",
    ("host", "unschedulable"),
)
PUBLIC_FAULT = condition(
    Condition(
        is_text("fault id"),
        unchanged=("host", "fault id"),
        taken="another client may have reported its recovery to ClusterD",
    ),
    "ClusterD's own list of public faults",
    ("host", "fault id"),
)
