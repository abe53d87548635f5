"""The least that the harness must be allowed in a cluster, as a manifest for its administrator.

The tables here are the one place that says what is called: the manifest is made of them, and a test holds them against
what the code asks of a real API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.platforms.kubernetes.resources import (
    ASCENDJOB,
    CONFIGMAP,
    EVENT,
    JOB,
    NODE,
    POD,
    PODGROUP,
    VCJOB,
    Resource,
)
from chaos.platforms.kubernetes.workload import Manifest
from chaos.scenario.kubernetes import Kubernetes

ACCOUNT = "chaos-harness"
CLUSTER_NAMESPACES = ("kube-system", "cluster-system", "mindx-dl")
"""Where MindCluster keeps the ConfigMaps of faults: the device plugin's, ClusterD's, and TaskD's service."""


@dataclass(frozen=True)
class Rule:
    """What may be done to a kind of objects. ``names`` restricts it to objects of these names."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()

    @property
    def plural(self) -> str:
        """As rules name it, ``pods/exec`` for a part of an object."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural

    def manifest(self) -> Manifest:
        """The rule in a Role."""
        rule: Manifest = {
            "apiGroups": [self.resource.group],
            "resources": [self.plural],
            "verbs": list(self.verbs),
        }
        return {**rule, "resourceNames": list(self.names)} if self.names else rule


def namespace_rules(settings: Kubernetes) -> tuple[Rule, ...]:
    """What is done in the job's own namespace."""
    workload = {"job": JOB, "vcjob": VCJOB, "ascendjob": ASCENDJOB}[settings.workload]
    rules = [
        Rule(workload, ("create", "delete", "list")),
        Rule(POD, ("delete", "get", "list", "watch")),
        Rule(POD, ("create", "get"), "exec"),
        Rule(POD, ("create",), "eviction"),
        Rule(CONFIGMAP, ("create", "delete", "get", "list", "patch")),
        Rule(EVENT, ("list", "watch")),
    ]
    if settings.workload != "job":
        rules += [Rule(PODGROUP, ("list", "watch")), Rule(CONFIGMAP, ("watch",))]
    return tuple(rules)


def cluster_rules(settings: Kubernetes) -> tuple[Rule, ...]:
    """What is done to nodes: those that the scenario names can be cordoned and made NotReady, and no others."""
    if not settings.nodes:
        return ()
    return (
        Rule(NODE, ("get", "patch"), names=settings.nodes),
        Rule(NODE, ("patch",), "status", names=settings.nodes),
    )


def manifests(settings: Kubernetes, account_namespace: str | None = None) -> list[Manifest]:
    """ServiceAccount, Roles and bindings. The account lives in the job's namespace unless another one is given."""
    home = account_namespace or settings.namespace
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": home}
    account: Manifest = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": home},
    }
    made: list[Manifest] = [account, *_bound("Role", settings.namespace, namespace_rules(settings), subject)]
    if settings.workload != "job":
        reading = (Rule(CONFIGMAP, ("get", "list", "watch")),)
        for namespace in CLUSTER_NAMESPACES:
            made += _bound("Role", namespace, reading, subject)
    if rules := cluster_rules(settings):
        made += _bound("ClusterRole", None, rules, subject)
    return made


def _bound(kind: str, namespace: str | None, rules: tuple[Rule, ...], subject: dict[str, Any]) -> list[Manifest]:
    group = "rbac.authorization.k8s.io"
    where = {"namespace": namespace} if namespace else {}
    # A cluster-wide object is of one namespace's harness only, so it has that one's name.
    name = ACCOUNT if namespace else f"{ACCOUNT}-{subject['namespace']}"
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": kind,
            "metadata": {"name": name, **where},
            "rules": [rule.manifest() for rule in rules],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": f"{kind}Binding",
            "metadata": {"name": name, **where},
            "subjects": [subject],
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
        },
    ]
