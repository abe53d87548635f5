"""Faults of a cluster's objects count with the cluster's own word alone."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.in_cluster import cluster_doubts
from chaos.history.event import Event
from chaos.plan.model import PlannedFault

POD = {
    "pod": {"name": "a", "uid": "u", "host": "worker-1"},
    "told_by": "the cluster: pod a (u): exit code 143, Error",
    "by": "this run's order",
}
TAINTS = {"taints": ["node.kubernetes.io/not-ready"]}


def doubts(kind: str, evidence: dict[str, Any]) -> list[str]:
    fault = PlannedFault("f1", kind, (1,), {"step": 5}, {}, None, 1)
    landing = Event("fault.landed", 20, 20, "harness", 1)
    return [text for text, _ in cluster_doubts(fault, landing, {"rank": 1, **evidence})]


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


def test_other_kinds_are_not_judged_here() -> None:
    assert doubts("kill", {}) == []
