"""Nodes of a cluster are released fault by fault, and count as released only when their kubelet is ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.faults.cluster import node_cordon, node_not_ready
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.platform import KubernetesPlatform
from chaos.platforms.kubernetes.resources import NODE, POD
from tests.unit.conftest import FakeClock
from tests.unit.platforms.kubernetes.standin_api import PLACE, Cluster

RUN = "run-12345678"
PATH = NODE.path(name="worker-1")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    made.reached(monkeypatch)
    kubelet(made, "True")
    monkeypatch.setattr("chaos.faults.cluster.node_cordon.pod_node", lambda *_: Pod(made))
    monkeypatch.setattr("chaos.faults.cluster.node_not_ready.pod_node", lambda *_: Pod(made))
    return made


class Pod:
    """The pod of every rank."""

    def __init__(self, cluster: Cluster) -> None:
        self.run_client = cluster.run_client()


def kubelet(cluster: Cluster, ready: str) -> None:
    """The kubelet of the node says whether it is ready; the cluster's controller taints it."""
    taints = [] if ready == "True" else [{"key": "node.kubernetes.io/not-ready"}]
    node = cluster.objects[PATH]
    spec = {key: value for key, value in node["spec"].items() if key != "taints"}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    cluster.put(PATH, {**node, "spec": {**spec, **({"taints": taints} if taints else {})}, "status": status})


def victim(fault: str) -> Victim:
    return Victim(0, ProcessIdentity(7, 1, "boot", 0), Path("none"), fault=fault, place=PLACE)


def made(kind: Any, fault: str) -> UndoStep:
    (step,) = kind.undo_steps(fault, [victim(fault)])
    kind.inject(cast("Job", None), victim(fault))
    return cast("UndoStep", step)


def undone(step: UndoStep) -> str:
    return UNDO_ACTIONS[step.action](step, UndoContext(RUN, FakeClock()))


def marks(cluster: Cluster) -> dict[str, str]:
    return cast("dict[str, str]", cluster.objects[PATH]["metadata"].get("annotations") or {})


def test_a_node_whose_kubelet_is_not_ready_is_waited_for_again_by_whoever_comes_next(cluster: Cluster) -> None:
    step = made(node_not_ready.KIND, "f1")
    kubelet(cluster, "False")
    with pytest.raises(CannotUndo, match="has not reported ready for 60 s, so it stays marked"):
        undone(step)
    assert "node worker-1 is marked with this run until its kubelet" in KubernetesPlatform().put_back(
        PLACE, RUN, FakeClock()
    )
    assert KubernetesPlatform().left(PLACE, RUN) == ["node worker-1, which it holds"]
    with pytest.raises(CannotUndo, match="stays marked"):
        undone(step)
    kubelet(cluster, "True")
    assert undone(step) == "released node worker-1"
    assert marks(cluster) == {} and KubernetesPlatform().left(PLACE, RUN) == []
    assert undone(step) == "node worker-1 is not held by this run for this fault"


def test_of_two_faults_on_one_node_each_is_undone_by_itself(cluster: Cluster) -> None:
    first, second = made(node_cordon.KIND, "f1"), made(node_cordon.KIND, "f2")
    third = made(node_not_ready.KIND, "f3")
    ended: Callable[[str], bool] = lambda fault: node_cordon.KIND.ended(cast("Job", None), victim(fault))  # noqa: E731
    assert undone(first) == "released node worker-1", "the node is not ready, but that is another fault's"
    assert (ended("f1"), ended("f2")) == (True, False)
    assert cluster.objects[PATH]["spec"]["unschedulable"] is True
    assert undone(second) == "released node worker-1"
    assert "unschedulable" not in cluster.objects[PATH]["spec"]
    assert marks(cluster)[names.HELD_ANNOTATION] == RUN
    with pytest.raises(CannotUndo, match="stays marked"):
        undone(third)
    kubelet(cluster, "True")
    assert undone(third) == "released node worker-1" and marks(cluster) == {}


def test_the_end_of_the_run_releases_what_is_left_of_all_faults(cluster: Cluster) -> None:
    for fault in ("f1", "f2"):
        made(node_cordon.KIND, fault)
    assert KubernetesPlatform().put_back(PLACE, RUN, FakeClock()) == "released node worker-1"
    assert (cluster.objects[PATH]["spec"], marks(cluster)) == ({}, {})


def test_a_node_that_was_lost_before_proves_nothing_though_another_fault_of_the_run_holds_it(cluster: Cluster) -> None:
    made(node_cordon.KIND, "f1")
    kubelet(cluster, "False")
    with pytest.raises(FaultMissed, match="before this fault said so"):
        made(node_not_ready.KIND, "f2")


def test_a_node_that_may_not_be_asked_for_keeps_nothing_else_from_being_taken_away(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run_client().create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    cluster.run_client().hold_node("worker-2", "f1", {"spec": {"unschedulable": True}})
    allowed = cluster.request

    def request(method: str, path: str, body: Any = None, **given: Any) -> dict[str, Any]:
        if path == PATH:
            raise ApiError(403, "nodes worker-1 is forbidden")
        return allowed(method, path, body, **given)

    monkeypatch.setattr(cluster, "request", request)
    with pytest.raises(PlatformError, match="node worker-1 was not released: nodes worker-1 is forbidden"):
        KubernetesPlatform().put_back(PLACE, RUN, FakeClock())
    assert list(cluster.run_client().list(POD)) == []
    assert not cluster.run_client().holds_node("worker-2")
