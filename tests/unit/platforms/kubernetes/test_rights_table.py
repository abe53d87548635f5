"""The rights hold what a scenario's faults need and no more; a real API server judges whether they are enough."""

from __future__ import annotations

import pytest

from chaos.faults.registered import fault_kind
from chaos.platforms.kubernetes import rbac
from chaos.scenario.models.kubernetes import Kubernetes

ALWAYS = {
    ("jobs", "create"), ("jobs", "delete"), ("jobs", "list"),
    ("pods", "delete"), ("pods", "get"), ("pods", "list"), ("pods", "watch"),
    ("pods/exec", "create"), ("pods/exec", "get"),
    ("configmaps", "delete"), ("configmaps", "list"), ("events", "list"), ("events", "watch"), ("nodes", "get"),
}  # fmt: skip
EVICTS = {("pods/eviction", "create")}
CHANGES = {("nodes", "patch")}
TELLS = {("configmaps", "create"), ("configmaps", "get"), ("configmaps", "patch")}
BESIDE = {
    "kill": set(),
    "pod-delete": set(),
    "pod-evict": EVICTS,
    "node-drain": EVICTS | CHANGES,
    "node-cordon": CHANGES,
    "node-not-ready": CHANGES | {("nodes/status", "patch")},
    "public-fault": TELLS,
}


@pytest.mark.parametrize("kind", BESIDE)
def test_a_kind_has_the_rights_that_it_needs_and_no_more(kind: str) -> None:
    settings = Kubernetes.model_validate({"namespace": "train", "image": "none", "nodes": ["worker-1"]})
    rules = rbac.rules(settings, fault_kind(kind).rights)
    assert {(rule.plural, verb) for rule in rules for verb in rule.verbs} == ALWAYS | BESIDE[kind]


def test_nodes_are_named_and_clusterd_s_list_is_read_alone() -> None:
    settings = Kubernetes.model_validate({"namespace": "train", "image": "none", "nodes": ["worker-1"]})
    rights = (*fault_kind("node-cordon").rights, *fault_kind("public-fault").rights)
    made = rbac.manifests(settings, rights)
    (nodes,) = (manifest for manifest in made if manifest["kind"] == "ClusterRole")
    assert {tuple(rule["resourceNames"]) for rule in nodes["rules"]} == {("worker-1",)}
    (beside,) = (
        manifest
        for manifest in made
        if manifest["kind"] == "Role" and manifest["metadata"]["namespace"] == "cluster-system"
    )
    assert beside["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["statistic-fault-info"]}
    ]
