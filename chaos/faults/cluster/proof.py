"""What proves a fault of a cluster's objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.evidence.conditions import Condition, condition, is_text, is_true
from chaos.evidence.deaths import death
from chaos.evidence.doubt import Doubt
from chaos.evidence.in_cluster import cluster_doubts
from chaos.evidence.proof import Case, Proof, all_of
from chaos.evidence.told import Told

_POD_FIELDS = ("pod", "told_by", "by")
_POD_ENDED = "the end of the pod by its UID, exit status"


def _of_cluster(case: Case) -> Iterator[Doubt]:
    yield from cluster_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def _is_injected(parameters: Told, told: Told) -> str | None:
    """The object, the pod that was meant by its UID, and the records of that pod."""
    del parameters
    pod, records = told.get("pod"), told.get("injected")
    if not (isinstance(pod, Mapping) and pod.get("name") and pod.get("uid")) or not told.get("uid"):
        return f"pod is {pod}, of object {told.get('uid')}"
    if not isinstance(records, list) or not records:
        return f"the records that it was made in are {records}"
    other = [one for one in records if str(one).split("/")[1:2] != [pod["name"]]]
    return f"it was made in {other}, and not in pod {pod['name']}" if other else None


POD_ENDED = Proof(_POD_ENDED, _POD_FIELDS, all_of(death, _of_cluster))
DRAIN = Proof(f"{_POD_ENDED}, and the cordon of its node", (*_POD_FIELDS, "unschedulable"), all_of(death, _of_cluster))
NOT_READY = Proof("the taint by the cluster's controller", ("taints",), _of_cluster)
MESH = condition(
    Condition(
        _is_injected,
        unchanged=("uid", "pod"),
        taken="somebody else may have deleted its object, or Chaos Mesh given up",
    ),
    "Chaos Mesh's word, in the status of its object",
    ("uid", "pod", "injected"),
)
CORDON = condition(
    Condition(is_true("unschedulable"), unchanged=("host",), taken="somebody else may have uncordoned the node"),
    "the node's own object",
    ("host", "unschedulable"),
)
PUBLIC_FAULT = condition(
    Condition(
        is_text("fault id"),
        unchanged=("host", "fault id"),
        taken="somebody else may have told ClusterD that it has recovered",
    ),
    "ClusterD's own list of public faults",
    ("host", "fault id"),
)
