"""A run touches objects of its namespace with its label, and no others: seen on a real API server."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.client.watching import Change, watch
from chaos.platforms.kubernetes.facts import PodFacts
from chaos.platforms.kubernetes.resources import CONFIGMAP, POD
from chaos.platforms.kubernetes.run_client import NotOurs, RunClient

pytestmark = pytest.mark.processes


def configmap(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "ascend", "image": "none"}], "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_what_a_run_makes_carries_its_label_and_is_taken_away_alone(api: Api, run_client: RunClient) -> None:
    path = CONFIGMAP.path(run_client.namespace)
    api.request("post", path, configmap("others"))
    api.request("post", path, configmap("another-runs", labels={names.RUN_LABEL: "run-other"}))
    run_client.create(configmap("mine"))
    run_client.create(pod("mine"))
    assert run_client.delete_all("job") == ("Pod mine", "ConfigMap mine")
    left = {manifest["metadata"]["name"] for manifest in api.request("get", path)["items"]}
    assert left >= {"others", "another-runs"} and "mine" not in left
    assert run_client.delete_all("job") == ()


def test_another_s_object_is_not_even_looked_at(api: Api, run_client: RunClient) -> None:
    api.request("post", CONFIGMAP.path(run_client.namespace), configmap("others"))
    with pytest.raises(NotOurs, match="does not carry this run's label"):
        run_client.find(CONFIGMAP, "others")
    with pytest.raises(NotOurs, match="for namespace kube-system"):
        run_client.create(configmap("mine", namespace="kube-system"))
    with pytest.raises(NotOurs, match="makes no Node"):
        run_client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})


def test_an_object_that_has_taken_the_name_is_not_deleted(api: Api, run_client: RunClient) -> None:
    first = run_client.create(pod("same"))
    assert run_client.delete(first, grace_seconds=0)
    second = run_client.create(pod("same"))
    assert not run_client.delete(first, grace_seconds=0)
    found = run_client.find(POD, "same")
    assert found is not None and found.uid == second.uid
    with pytest.raises(NotOurs, match="another one"):
        run_client.attach(first, ["true"])


def test_a_pod_is_evicted(run_client: RunClient) -> None:
    made = run_client.create(pod("goes"))
    assert run_client.evict(made)
    assert run_client.find(POD, "goes") is None
    assert not run_client.evict(made)


def test_nodes_are_changed_only_by_name_and_held_by_one_run(api: Api, run_client: RunClient) -> None:
    for name in ("worker-1", "worker-2"):
        api.request("post", "/api/v1/nodes", {"metadata": {"name": name}})
    try:
        with pytest.raises(NotOurs, match="worker-2 is not among"):
            run_client.hold_node("worker-2", "f1", {"spec": {"unschedulable": True}})
        run_client.hold_node("worker-1", "f1", {"spec": {"unschedulable": True}})
        other = RunClient(api, run_client.namespace, "run-other", ["worker-1"])
        with pytest.raises(NotOurs, match="held by run"):
            other.hold_node("worker-1", "f1", {"spec": {"unschedulable": True}})
        assert other.release_node("worker-1") == "not held"
        assert run_client.node("worker-1")["spec"]["unschedulable"] is True
        assert run_client.release_node("worker-1") == "released"
        assert "unschedulable" not in run_client.node("worker-1")["spec"]
        assert run_client.release_node("worker-1") == "not held"
    finally:
        for name in ("worker-1", "worker-2"):
            api.request("delete", f"/api/v1/nodes/{name}")


def test_a_kind_that_the_cluster_does_not_know_has_no_objects(run_client: RunClient) -> None:
    from chaos.platforms.kubernetes.resources import NETWORK_CHAOS

    assert list(run_client.list(NETWORK_CHAOS)) == []


def test_a_refusal_says_what_was_asked_and_why(run_client: RunClient) -> None:
    with pytest.raises(ApiError, match="already exists") as refused:
        for _ in range(2):
            run_client.create(configmap("twice"))
    assert refused.value.status == 409


def test_a_pod_is_followed_from_its_making_to_its_end(run_client: RunClient) -> None:
    stopped, facts = threading.Event(), PodFacts()
    selector = f"{names.RUN_LABEL}={run_client.run}"
    seen: list[str] = []
    made = run_client.create(pod("followed"))
    for change in watch(run_client.api, POD.path(run_client.namespace), selector, stopped, silence=20):
        assert isinstance(change, Change)
        seen += [name for name, _ in facts.take(change)]
        if seen == ["pod.state"]:
            run_client.delete(made, grace_seconds=0)
        if "pod.gone" in seen:
            stopped.set()
    assert seen[0] == "pod.state" and seen[-1] == "pod.gone"
    assert facts.states == {}
