"""The fewest rights that the harness needs in a cluster, as a manifest for its administrator.

The tables here have the rights of every run, and a fault's kind declares its additional rights (``rights``). A test
compares all of them with the requests of the code to a real API server, by the server's own record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from chaos.platforms.kubernetes.resources import CONFIGMAP, EVENT, NODE, POD, PODGROUP, WORKLOADS, Resource
from chaos.platforms.kubernetes.workload import Manifest
from chaos.scenario.models.kubernetes import Kubernetes

ACCOUNT = "chaos-harness"
CLUSTER_NAMESPACES = ("kube-system", "cluster-system", "mindx-dl")
"""The namespaces of MindCluster's ConfigMaps of faults: the device plugin's, ClusterD's, and TaskD's service."""

OWN, NODES = "", "nodes"
"""Places of a rule: the job's own namespace, and the cluster's nodes that the scenario names."""


@dataclass(frozen=True)
class Rule:
    """The permitted acts on a kind of objects. ``names`` restricts it to objects of these names.

    ``place`` is the job's own namespace (:data:`OWN`), the nodes that the scenario names (:data:`NODES`), or the
    namespace of that name.
    """

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    place: str = OWN

    @property
    def plural(self) -> str:
        """The name in rules, ``pods/exec`` for a part of an object."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural

    def manifest(self) -> Manifest:
        """Return the rule in a Role."""
        rule: Manifest = {
            "apiGroups": [self.resource.group],
            "resources": [self.plural],
            "verbs": list(self.verbs),
        }
        return {**rule, "resourceNames": list(self.names)} if self.names else rule


def rules(settings: Kubernetes, faults: Iterable[Rule] = ()) -> tuple[Rule, ...]:
    """Return the rules of a run; ``faults`` are the additional rules of its fault kinds."""
    needed = [
        Rule(WORKLOADS[settings.workload], ("create", "delete", "list")),
        Rule(POD, ("delete", "get", "list", "watch")),
        # An exec stream is asked for with GET; newer API servers want the right to create one as well.
        Rule(POD, ("create", "get"), "exec"),
        Rule(CONFIGMAP, ("delete", "list")),
        Rule(EVENT, ("list", "watch")),
    ]
    if settings.workload != "job":
        needed += [Rule(PODGROUP, ("list", "watch")), Rule(CONFIGMAP, ("watch",))]
        needed += [Rule(CONFIGMAP, ("list", "watch"), place=namespace) for namespace in CLUSTER_NAMESPACES]
    if settings.manifest is not None:
        needed.append(Rule(CONFIGMAP, ("create",)))
    if settings.nodes:  # heal checks which of them the run still holds
        needed.append(Rule(NODE, ("get",), place=NODES))
    merged: dict[tuple[Resource, str, tuple[str, ...], str], list[str]] = {}
    for rule in (*needed, *faults):
        merged.setdefault((rule.resource, rule.subresource, rule.names, rule.place), []).extend(rule.verbs)
    return tuple(
        Rule(resource, tuple(sorted(set(verbs))), subresource, named, place)
        for (resource, subresource, named, place), verbs in merged.items()
    )


def manifests(
    settings: Kubernetes, faults: Iterable[Rule] = (), account_namespace: str | None = None
) -> list[Manifest]:
    """Return ServiceAccount, Roles and bindings; ``faults`` are the rules of the scenario's fault kinds.

    The account lives in the job's namespace unless another namespace is given.
    """
    home = account_namespace or settings.namespace
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": home}
    account: Manifest = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": home},
    }
    made: list[Manifest] = [account]
    by_place: dict[str, list[Rule]] = {}
    for rule in rules(settings, faults):
        by_place.setdefault(settings.namespace if rule.place == OWN else rule.place, []).append(rule)
    for place, listed in by_place.items():
        if place != NODES:
            made += _bound("Role", place, tuple(listed), subject)
        elif settings.nodes:
            named = tuple(replace(rule, names=settings.nodes) for rule in listed)
            made += _bound("ClusterRole", None, named, subject)
    return made


def _bound(kind: str, namespace: str | None, rules: tuple[Rule, ...], subject: dict[str, Any]) -> list[Manifest]:
    group = "rbac.authorization.k8s.io"
    where = {"namespace": namespace} if namespace else {}
    # A cluster-wide object is for one namespace's harness only, so it has the namespace's name.
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
