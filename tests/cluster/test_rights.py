"""The rights that ``chaos kubernetes rbac`` prints are enough for what the harness does, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.platforms.kubernetes import names, rbac
from chaos.platforms.kubernetes.api import Api, ApiError, connect
from chaos.platforms.kubernetes.own import Own
from chaos.platforms.kubernetes.resources import CONFIGMAP, EVENT, NODE, POD, REVIEW, Resource
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.scenario.job import Job
from chaos.scenario.kubernetes import Kubernetes
from tests.cluster.control_plane import ControlPlane

_GROUPS = {"Role": "roles", "RoleBinding": "rolebindings", "ClusterRole": "clusterroles"}
_GROUPS["ClusterRoleBinding"] = "clusterrolebindings"


@pytest.fixture
def settings(namespace: str) -> Kubernetes:
    return Kubernetes.model_validate({"namespace": namespace, "image": "none", "nodes": ["worker-1"]})


@pytest.fixture
def harness(plane: ControlPlane, api: Api, settings: Kubernetes) -> Api:
    """The API as the account that the manifest makes."""
    for one in rbac.manifests(settings):
        namespace = one["metadata"].get("namespace")
        if one["kind"] == "ServiceAccount":
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        else:
            base = "/apis/rbac.authorization.k8s.io/v1"
            path = f"{base}/namespaces/{namespace}/" if namespace else f"{base}/"
            path += _GROUPS[one["kind"]]
        api.request("post", path, one)
    account = f"/api/v1/namespaces/{settings.namespace}/serviceaccounts/{rbac.ACCOUNT}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = api.request("post", account, asked)["status"]["token"]
    return connect(None, plane.kubeconfig_for(settings.namespace, token))


def _may(api: Api, verb: str, resource: Resource, namespace: str | None, name: str = "", part: str = "") -> bool:
    attributes = {
        "verb": verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": part,
        "namespace": namespace or "",
        "name": name,
    }
    body = {"apiVersion": REVIEW.api_version, "kind": REVIEW.kind, "spec": {"resourceAttributes": attributes}}
    return bool(api.request("post", REVIEW.path(), body)["status"]["allowed"])


def test_everything_that_a_run_does_is_allowed(api: Api, harness: Api, settings: Kubernetes) -> None:
    api.request("post", "/api/v1/nodes", {"metadata": {"name": "worker-1"}})
    try:
        own = Own(harness, settings.namespace, "run-1", settings.nodes)
        for one in manifests(settings, Job.model_validate({"steps": 1}), 2, Named("run-1", "run-1-train")):
            own.create(one)
        data: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fault"}, "data": {}}
        own.replace_data(own.create(data), {"a": "b"})
        # Of a job's pods none is made by the harness itself: this one stands for those that a controller makes.
        spec: dict[str, Any] = {"containers": [{"name": names.CONTAINER, "image": "none"}]}
        spec["automountServiceAccountToken"] = False
        for name in ("a", "b"):
            metadata = {"name": name, "labels": {names.RUN_LABEL: "run-1"}}
            api.request("post", POD.path(settings.namespace), {"metadata": metadata, "spec": spec})
        first, second = (own.find(POD, name) for name in ("a", "b"))
        assert first is not None and second is not None
        assert own.evict(first)
        with pytest.raises(ApiError) as refused:  # nobody runs the pod, but it was allowed to ask
            own.attach(second, ["true"])
        assert refused.value.status != 403, refused.value
        own.hold_node("worker-1", {"spec": {"unschedulable": True}})
        own.report_node("worker-1", {"type": "Ready", "status": "False"})
        assert own.release_node("worker-1")
        for resource in (POD, EVENT):
            query = {"watch": "true", "timeoutSeconds": "1"}
            list(harness.lines(resource.path(settings.namespace), query, silence=20, longest=20))
        assert {"Pod b", "ConfigMap fault", "Job run-1-train-n0"} <= set(own.take_away("job"))
    finally:
        api.request("delete", "/api/v1/nodes/worker-1")


def test_nothing_else_is_allowed(harness: Api, settings: Kubernetes) -> None:
    secrets_, accounts = (Resource("", "v1", plural, "") for plural in ("secrets", "serviceaccounts"))
    roles = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
    own = settings.namespace
    assert _may(harness, "delete", POD, own)
    refused = [
        (verb, resource, namespace, name, part)
        for verb, resource, namespace, name, part in (
            ("get", secrets_, own, "", ""),
            ("create", accounts, own, "", "token"),
            ("create", roles, own, "", ""),
            ("create", POD, own, "", ""),
            ("watch", CONFIGMAP, own, "", ""),
            ("patch", POD, own, "", ""),
            ("delete", POD, "default", "", ""),
            ("list", POD, None, "", ""),
            ("list", CONFIGMAP, "kube-system", "", ""),
            ("list", NODE, None, "", ""),
            ("patch", NODE, None, "worker-2", ""),
            ("delete", NODE, None, "worker-1", ""),
            ("patch", NODE, None, "worker-2", "status"),
        )
        if _may(harness, verb, resource, namespace, name, part)
    ]
    assert refused == []
