"""Faults of a cluster's objects count with the cluster's own word alone."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.faults.cluster.proof import cluster_doubts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

POD = {
    "pod": {"name": "a", "uid": "u", "host": "worker-1"},
    "told_by": "the cluster: pod a (u): exit code 143, Error",
    "by": "this run's order",
}
TAINTS = {"taints": ["node.kubernetes.io/not-ready"]}


ACT = Event("fault.injecting", 10, 10, "harness", 1, "train", 1, 101, {"fault": "f1"})
FOUND = Event("rank.found", 2, 2, "harness", 0, "train", 1, 101, {"node": 0})


def told(event: str, mono: int, **data: Any) -> Event:
    """What the cluster tells of the pod of node 0."""
    return Event(event, mono, mono, "kubernetes", mono, data={"node": 0, "pod": "a", "uid": "u", **data})


STATE, GOING = told("pod.state", 1, phase="Running"), told("pod.state", 12, phase="Running", deleting=True)


def doubts(kind: str, evidence: dict[str, Any], *record: Event) -> list[str]:
    fault = PlannedFault("f1", kind, (1,), {"step": 5}, {}, None, 1)
    landing = Event("fault.landed", 20, 20, "harness", 1)
    history = History((FOUND, ACT, *(record or (STATE, GOING))))
    return [text for text, _ in cluster_doubts(history, fault, landing, {"rank": 1, **evidence}, ACT)]


@pytest.mark.parametrize(
    ("kind", "evidence"),
    [
        ("pod-delete", POD),
        ("pod-evict", POD),
        ("node-drain", {**POD, "unschedulable": True}),
        ("node-not-ready", TAINTS),
    ],
)
def test_each_kind_is_proven_by_its_evidence_and_by_nothing_less(kind: str, evidence: dict[str, Any]) -> None:
    assert doubts(kind, evidence) == []
    for key in evidence:
        less = {name: value for name, value in evidence.items() if name != key}
        assert doubts(kind, less), key
    assert doubts(kind, {"pod": {}, "unschedulable": False, "taints": ["other"], "fault id": ""})


@pytest.mark.parametrize("kind", ["pod-delete", "pod-evict"])
@pytest.mark.parametrize(
    ("record", "doubt"),
    [
        ([told("pod.gone", 15)], "the cluster's record does not show which pod rank 1 was in"),
        ([told("pod.state", 1, node=1), GOING], "the cluster's record does not show which pod rank 1 was in"),
        ([told("pod.state", 1, uid="v"), GOING], "rank 1 was in pod v, and the evidence is of pod u"),
        (
            [STATE, told("pod.rescheduled", 5, uid="v"), GOING],
            "rank 1 was in pod v, and the evidence is of pod u",
        ),
        ([STATE], "the cluster's record does not show that the pod of rank 1 went"),
        ([STATE, told("pod.gone", 12, uid="v")], "the cluster's record does not show that the pod of rank 1 went"),
        (
            [STATE, told("pod.state", 9, phase="Failed"), told("pod.gone", 12)],
            "the pod of rank 1 was going before this run had it deleted",
        ),
    ],
)
def test_the_pod_that_went_is_the_one_that_the_cluster_tells_of(kind: str, record: list[Event], doubt: str) -> None:
    assert doubts(kind, POD, *record) == [doubt]


@pytest.mark.parametrize("end", [told("pod.gone", 12), told("pod.state", 12, phase="Failed"), GOING])
def test_a_pod_has_gone_by_any_word_of_its_end(end: Event) -> None:
    assert doubts("pod-delete", POD, STATE, end) == []
    assert doubts("pod-delete", POD, told("pod.state", 1, uid="v"), told("pod.rescheduled", 5), end) == []


def test_other_kinds_are_not_judged_here() -> None:
    assert doubts("kill", {}) == []
