"""A run's only access to a cluster: objects of its namespace with its label, and no others.

A node of the cluster does not belong to a run. A node may be changed only if the scenario names it, and it is marked
with the run that has to put it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import MERGE, STRATEGIC, Api, ApiError
from chaos.platforms.kubernetes.node_hold import STATUS, hold_of, holder, is_ready
from chaos.platforms.kubernetes.resources import (
    CONFIGMAP,
    NODE,
    POD,
    WORKLOADS,
    Resource,
    resource_of,
)
from chaos.platforms.kubernetes.workload import Manifest

Answer = TypeVar("Answer")
Release = Literal["not held", "awaited", "released"]
"""The outcome of the release of a node."""

_PAGE = "500"
_REVISIONS = 20
"""How often somebody else may change a node between a look at it and a change; its kubelet does so now and then."""


class NotOurs(PlatformError):
    """The object does not belong to the run, so it is not touched."""


@dataclass(frozen=True)
class RunObject:
    """An object of the run: its identity, and its content at the last look."""

    resource: Resource
    name: str
    uid: str
    object: Mapping[str, Any]


class RunClient:
    """The acts of one run in a cluster. All methods raise ApiError, and NotOurs for objects that are not the run's."""

    def __init__(self, api: Api, namespace: str, run: str, nodes: Sequence[str] = ()) -> None:
        """Keep the run's bounds: ``run`` is its identity, ``nodes`` the cluster's nodes that its scenario names."""
        self.api = api
        self.namespace = namespace
        self.run = run
        self._nodes = frozenset(nodes)

    # Objects of the run.

    def find(self, resource: Resource, name: str) -> RunObject | None:
        """Return the object of that name; None when there is none. Raises NotOurs when it is another's."""
        try:
            manifest = self.api.request("get", resource.path(self.namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return self._ours(resource, manifest)

    def list(self, resource: Resource, **labels: str) -> Iterator[RunObject]:
        """Yield every object of the run, of this kind; none where the cluster does not know the kind."""
        selector = {names.RUN_LABEL: self.run, **labels}
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in selector.items()), "limit": _PAGE}
        while True:
            try:
                page = self.api.request("get", resource.path(self.namespace), query=query)
            except ApiError as error:
                if error.status == 404:
                    return
                raise
            for manifest in page.get("items") or ():
                yield self._ours(resource, manifest)
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return
            query = {**query, "continue": more}

    def create(self, manifest: Manifest) -> RunObject:
        """Make an object. It must be of the run's namespace, and carries the run's label."""
        resource = resource_of(manifest)
        metadata = manifest.get("metadata") or {}
        if resource is None or not resource.namespaced:
            raise NotOurs(f"a run makes no {manifest.get('kind')} of {manifest.get('apiVersion')}")
        if metadata.get("namespace", self.namespace) != self.namespace:
            raise NotOurs(f"{manifest.get('kind')} {metadata.get('name')} is for namespace {metadata['namespace']}")
        labels = {**(metadata.get("labels") or {}), names.RUN_LABEL: self.run}
        marked = {**manifest, "metadata": {**metadata, "namespace": self.namespace, "labels": labels}}
        return self._ours(resource, self.api.request("post", resource.path(self.namespace), marked))

    def replace_data(self, run_object: RunObject, data: Mapping[str, str]) -> RunObject:
        """Give a ConfigMap of the run other data."""
        body = {"metadata": {"uid": run_object.uid}, "data": dict(data)}
        return self._ours(
            run_object.resource, self.api.request("patch", self._path(run_object), body, content_type=MERGE)
        )

    def delete(self, run_object: RunObject, *, grace_seconds: int | None = None) -> bool:
        """Delete exactly this object, not a later object of its name; False when it has gone already."""
        body: Manifest = {"preconditions": {"uid": run_object.uid}, "propagationPolicy": "Background"}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        return self._gone_is_fine("delete", self._path(run_object), body)

    def evict(self, pod: RunObject) -> bool:
        """Evict exactly this pod, as a drain does; False when it has gone already. Disruption budgets may refuse it."""
        self._check(pod, POD)
        for version in ("policy/v1", "policy/v1beta1"):  # v1beta1 until 1.21, v1 alone from 1.25 on
            body = {
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": {"name": pod.name, "namespace": self.namespace},
                "deleteOptions": {"preconditions": {"uid": pod.uid}},
            }
            try:
                return self._gone_is_fine("post", POD.path(self.namespace, pod.name, "eviction"), body)
            except ApiError as error:
                if version != "policy/v1" or error.status not in (400, 415):
                    raise
        raise AssertionError

    def attach(self, pod: RunObject, argv: Sequence[str]) -> Any:
        """Run a program in the pod's container. Another pod of the same name is found out before, not during it."""
        self._check(pod, POD)
        now = self.find(POD, pod.name)
        if now is None or now.uid != pod.uid:
            raise NotOurs(f"pod {pod.name} is another one than the one that was meant")
        return self.api.attach(self.namespace, pod.name, names.CONTAINER, argv)

    def delete_all(
        self, workload: str, spared: Callable[[RunObject], bool] = lambda run_object: False
    ) -> tuple[str, ...]:
        """Delete everything in the namespace with the run's label, except ``spared``; return the deleted, in words.

        ``workload`` is the kind of its job. The run may have no right to see other kinds of jobs.
        """
        deleted = []
        for resource in (WORKLOADS[workload], POD, CONFIGMAP):
            for run_object in self.list(resource):
                if run_object.object["metadata"].get("deletionTimestamp") is not None or spared(run_object):
                    continue
                if self.delete(run_object):
                    deleted.append(f"{resource.kind} {run_object.name}")
        return tuple(deleted)

    # Nodes of the cluster.

    def node(self, name: str) -> Manifest:
        """Return a node as it is. Raises NotOurs for a node that the scenario does not name."""
        self._check_node(name)
        return self.api.request("get", NODE.path(name=name))

    def hold_node(self, name: str, fault: str, change: Manifest, *, status: bool = False) -> bool:
        """Mark a node with the run and one of its faults, and change its ``spec``.

        The values before are kept on the node, for the release. ``status``: the fault goes on to write into the node's
        status (:meth:`report_node`). Returns False where nothing had to be changed: then the node's state is not the
        run's doing. Raises NotOurs where another run holds it.
        """
        changes = change.get("spec") or {}

        def held(node: Manifest) -> tuple[Manifest | None, bool]:
            if holder(node) not in (None, self.run):
                raise NotOurs(f"node {name} is held by run {holder(node)}, which has to put it back first")
            hold = hold_of(self.run, node).with_fault(fault, node.get("spec") or {}, changes, status)
            by_us = not changes or any(hold.kept[key]["before"] != value for key, value in changes.items())
            return {**change, "metadata": {"annotations": hold.annotations()}}, by_us

        return self._revise_node(name, held)

    def release_node(self, name: str, fault: str | None = None) -> Release:
        """Put back a fault's changes of a node, and remove its mark; None for all faults of the run.

        Parts that somebody else has changed meanwhile stay as they are, and so do parts that another fault of the run
        has changed too. ``awaited``: the fault has written into the node's status, and the node's kubelet has not
        reported yet that it is ready; the mark stays until then, so that the next caller waits too. ``not held``: also
        where the cluster no longer has the node.
        """

        def released(node: Manifest) -> tuple[Manifest | None, Release]:
            hold = hold_of(self.run, node)
            ends = hold.of(fault)
            if not ends:
                return None, "not held"
            back, rest = hold.without(fault, node.get("spec") or {}, is_ready(node))
            answer: Release = "awaited" if set(ends) & set(rest.faults) else "released"
            if rest == hold:
                return None, answer
            return {"spec": back, "metadata": {"annotations": rest.annotations()}}, answer

        try:
            return self._revise_node(name, released)
        except ApiError as error:
            if error.status == 404:
                return "not held"
            raise

    def holds_node(self, name: str, fault: str | None = None) -> bool:
        """Return whether a node is marked with the run, or with that fault of it; False where it is gone."""
        try:
            return bool(hold_of(self.run, self.node(name)).of(fault))
        except ApiError as error:
            if error.status == 404:
                return False
            raise

    def _revise_node(self, name: str, decide: Callable[[Manifest], tuple[Manifest | None, Answer]]) -> Answer:
        """Change a node according to its state; look again where somebody else changes it at the same moment."""
        for last in (*[False] * _REVISIONS, True):
            node = self.node(name)
            change, answer = decide(node)
            if change is None:
                return answer
            version = {"resourceVersion": (node.get("metadata") or {}).get("resourceVersion")}
            body = {**change, "metadata": {**change["metadata"], **version}}
            try:
                self.api.request("patch", NODE.path(name=name), body, content_type=MERGE)
            except ApiError as error:
                if error.status != 409 or last:
                    raise
            else:
                return answer
        raise AssertionError

    def report_node(self, name: str, fault: str, condition: Manifest) -> None:
        """Write a condition into the status of a node that the run holds for it."""
        if STATUS not in hold_of(self.run, self.node(name)).faults.get(fault, ()):
            raise NotOurs(f"the status of node {name} is not held by this run for fault {fault}")
        body = {"status": {"conditions": [condition]}}
        self.api.request("patch", NODE.path(name=name, subresource="status"), body, content_type=STRATEGIC)

    # The guard.

    def _ours(self, resource: Resource, manifest: Mapping[str, Any]) -> RunObject:
        metadata = manifest.get("metadata") or {}
        name, uid = str(metadata.get("name", "")), str(metadata.get("uid", ""))
        if metadata.get("namespace") != self.namespace:
            raise NotOurs(f"{resource.kind} {name} is in namespace {metadata.get('namespace')}, not {self.namespace}")
        if (metadata.get("labels") or {}).get(names.RUN_LABEL) != self.run:
            raise NotOurs(f"{resource.kind} {name} does not carry this run's label {names.RUN_LABEL}; left alone")
        if not uid:
            raise NotOurs(f"{resource.kind} {name} has no identity (uid)")
        return RunObject(resource, name, uid, manifest)

    def _check(self, run_object: RunObject, resource: Resource) -> None:
        if run_object.resource != resource:
            raise NotOurs(f"{run_object.resource.kind} {run_object.name} is no {resource.kind}")
        self._ours(run_object.resource, run_object.object)

    def _path(self, run_object: RunObject) -> str:
        self._ours(run_object.resource, run_object.object)
        return run_object.resource.path(self.namespace, run_object.name)

    def _check_node(self, name: str) -> None:
        if name not in self._nodes:
            raise NotOurs(f"node {name} is not among cluster.kubernetes.nodes, so it is not touched")

    def _gone_is_fine(self, method: str, path: str, body: Manifest) -> bool:
        """Return False when the object has gone, or another object has its name (the API's conflict of identities)."""
        try:
            self.api.request(method, path, body)
        except ApiError as error:
            if error.status in (404, 409):
                return False
            raise
        return True
