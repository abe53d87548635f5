"""The table of rights holds nothing that no call needs; a real API server judges whether it is enough."""

from __future__ import annotations

from chaos.platforms.kubernetes import rbac
from chaos.scenario.kubernetes import Kubernetes


def test_every_right_is_used() -> None:
    """The tables have no verb for which the code has no call: what each is for."""
    used = {
        ("jobs", "create"), ("jobs", "delete"), ("jobs", "list"),
        ("pods", "delete"), ("pods", "get"), ("pods", "list"), ("pods", "watch"),
        ("pods/exec", "create"), ("pods/exec", "get"), ("pods/eviction", "create"),
        ("configmaps", "create"), ("configmaps", "delete"), ("configmaps", "get"), ("configmaps", "list"),
        ("configmaps", "patch"), ("events", "list"), ("events", "watch"),
        ("nodes", "get"), ("nodes", "patch"), ("nodes/status", "patch"),
    }  # fmt: skip
    settings = Kubernetes.model_validate({"namespace": "train", "image": "none", "nodes": ["worker-1"]})
    rules = [*rbac.namespace_rules(settings), *rbac.cluster_rules(settings)]
    assert {(rule.plural, verb) for rule in rules for verb in rule.verbs} == used
