"""The rights that ``chaos kubernetes rbac`` prints are enough for what the harness does, and for nothing else.

What is used is told by the API server's own record of requests (its audit log), which authorizes by RBAC alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.cluster import node_cordon, node_not_ready, pod_evict, public_fault
from chaos.platforms.kubernetes import names, rbac
from chaos.platforms.kubernetes.client.api import Api, ApiError, connect
from chaos.platforms.kubernetes.fault_message import forget, is_listed, is_sent, recover, send
from chaos.platforms.kubernetes.public_fault import public_fault as message_of
from chaos.platforms.kubernetes.resources import CONFIGMAP, EVENT, NODE, POD, REVIEW, Resource
from chaos.platforms.kubernetes.run_client import RunClient
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes
from tests.cluster.command_line import account, apply
from tests.cluster.control_plane import ControlPlane
from tests.cluster.standin_clusterd import Clusterd

pytestmark = pytest.mark.processes

KINDS = (pod_evict.KIND, node_cordon.KIND, node_not_ready.KIND, public_fault.KIND)
ASKED_BY_NEWER_SERVERS = {("create", "pods/exec")}
"""An exec stream over a websocket is a GET, for which newer API servers want the right to create one as well."""


@pytest.fixture
def settings(namespace: str) -> Kubernetes:
    return Kubernetes.model_validate({"namespace": namespace, "image": "none", "nodes": ["worker-1"]})


@pytest.fixture
def rules(settings: Kubernetes) -> tuple[rbac.Rule, ...]:
    return rbac.rules(settings, [rule for kind in KINDS for rule in kind.rights])


@pytest.fixture
def harness(plane: ControlPlane, api: Api, settings: Kubernetes) -> Api:
    """The API as the account that the manifest makes."""
    Clusterd(api, settings.namespace)  # makes its namespace
    for manifest in rbac.manifests(settings, [rule for kind in KINDS for rule in kind.rights]):
        apply(api, manifest)
    return connect(None, account(plane, api, settings.namespace))


@pytest.fixture
def worker(api: Api) -> Iterator[str]:
    api.request("post", "/api/v1/nodes", {"metadata": {"name": "worker-1"}})
    yield "worker-1"
    api.request("delete", "/api/v1/nodes/worker-1")


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


def _do_everything(api: Api, harness: Api, settings: Kubernetes, worker: str) -> None:
    """What runs with these faults do, by the account."""
    run_client = RunClient(harness, settings.namespace, "run-1", settings.nodes)
    for manifest in manifests(settings, Job.model_validate({"steps": 1}), 2, Named("run-1", "run-1-train")):
        run_client.create(manifest)
    # Of a job's pods none is made by the harness itself: this one stands for those that a controller makes.
    spec: dict[str, Any] = {"containers": [{"name": names.CONTAINER, "image": "none"}]}
    spec["automountServiceAccountToken"] = False
    for name in ("a", "b"):
        metadata = {"name": name, "labels": {names.RUN_LABEL: "run-1"}}
        api.request("post", POD.path(settings.namespace), {"metadata": metadata, "spec": spec})
    first, second = (run_client.find(POD, name) for name in ("a", "b"))
    assert first is not None and second is not None
    assert run_client.evict(first)
    with pytest.raises(ApiError) as refused:  # nobody runs the pod, but it was allowed to ask
        run_client.attach(second, ["true"])
    assert refused.value.status != 403, refused.value
    run_client.hold_node(worker, "f0", {"spec": {"unschedulable": True}}, status=True)
    run_client.report_node(worker, "f0", {"type": "Ready", "status": "False"})
    assert run_client.release_node(worker) == "awaited"
    run_client.report_node(worker, "f0", {"type": "Ready", "status": "True"})
    assert run_client.release_node(worker) == "released"
    now = SYSTEM_CLOCK.wall() // 1_000_000
    described: dict[str, Any] = {"node": worker, "devices": (0,), "code": public_fault.DEFAULT_CODE, "kind": "NPU"}
    send(run_client, "f1", worker, message_of("run-1", "f1", **described, began_ms=now, now_ms=now, assertion="occur"))
    assert is_sent(run_client, "f1", worker) and not is_listed(run_client.api, worker, "run-1.f1")
    assert recover(run_client, "f1", worker, now) == "run-1.f1"
    forget(run_client, "f1", worker)
    for resource in (POD, EVENT):
        harness.request("get", resource.path(settings.namespace))
        query = {"watch": "true", "timeoutSeconds": "1"}
        list(harness.lines(resource.path(settings.namespace), query, silence=20, longest=20))
    assert {"Pod b", "Job run-1-train-n0"} <= set(run_client.delete_all("job"))


def test_everything_that_a_run_does_is_allowed_and_every_right_is_used(
    plane: ControlPlane, api: Api, harness: Api, settings: Kubernetes, rules: tuple[rbac.Rule, ...], worker: str
) -> None:
    _do_everything(api, harness, settings, worker)
    places = {rbac.OWN: settings.namespace, rbac.NODES: ""}
    granted = {(verb, rule.plural, places.get(rule.place, rule.place)) for rule in rules for verb in rule.verbs}
    used = plane.done_by(settings.namespace, rbac.ACCOUNT)
    assert {(verb, what) for verb, what, _ in granted - used} == ASKED_BY_NEWER_SERVERS
    assert used - granted == set()


def test_nothing_else_is_allowed(harness: Api, settings: Kubernetes) -> None:
    secrets_, accounts = (Resource("", "v1", plural, "") for plural in ("secrets", "serviceaccounts"))
    roles = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
    own = settings.namespace
    assert _may(harness, "delete", POD, own)
    assert _may(harness, "get", CONFIGMAP, "cluster-system", "statistic-fault-info")
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
            ("get", CONFIGMAP, "cluster-system", "another", ""),
            ("patch", CONFIGMAP, "cluster-system", "statistic-fault-info", ""),
            ("list", NODE, None, "", ""),
            ("patch", NODE, None, "worker-2", ""),
            ("delete", NODE, None, "worker-1", ""),
            ("patch", NODE, None, "worker-2", "status"),
        )
        if _may(harness, verb, resource, namespace, name, part)
    ]
    assert refused == []
