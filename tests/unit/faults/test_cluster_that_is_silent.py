"""A cluster whose API does not answer for a moment makes no fault of its objects missed, ended or undone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.faults.cluster import (
    node_cordon,
    node_drain,
    node_not_ready,
    pod_delete,
    pod_dns_gone,
    pod_evict,
    pod_io_delay,
    pod_network_delay,
    pod_network_loss,
    pod_network_partition,
    public_fault,
)
from chaos.faults.kind import Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.facts import pod_state
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import NODE
from tests.unit.conftest import FakeClock
from tests.unit.platforms.kubernetes.standin_api import SETTINGS, Cluster, Clusterd

pytestmark = pytest.mark.processes

RUN = "run-12345678"
VOLUME_SETTINGS = {**SETTINGS, "volume": {"path": "/data", "host_path": "/data"}}
CLUSTER = {"kubeconfig": None, "settings": VOLUME_SETTINGS}
NODE_PATH = NODE.path(name="worker-1")
MESH: dict[Any, dict[str, Any]] = {
    pod_network_delay.KIND: {"latency": 20, "jitter": 5},
    pod_network_loss.KIND: {"percent": 5},
    pod_network_partition.KIND: {"seconds": 1, "direction": "to"},
    pod_io_delay.KIND: {"latency": 50},
    pod_dns_gone.KIND: {},
}
CONDITIONS = [node_cordon.KIND, public_fault.KIND, *MESH]
PODS = [pod_delete.KIND, pod_evict.KIND, node_drain.KIND]
SILENCES = [ApiError(503, "503 not ready"), ApiError(None, "Connection reset by peer"), ApiError(429, "too many")]


class Job:
    """A job in two pods of the cluster, whose ranks were killed with them when they have gone."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        run_client = cluster.run_client()
        found = [
            run_client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {}, "status": {}})
            for name in ("first", "second")
        ]
        followed: Any = SimpleNamespace(state=lambda uid: None, successors=lambda uid: [])
        helper: Any = None
        first = pod_state({**found[0].object, "spec": {"nodeName": "worker-1"}})
        self.nodes = [
            PodNode(number, one, first, "127.0.0.1", directory, helper, run_client, followed, CLUSTER)
            for number, one in enumerate(found)
        ]

    def node(self, number: int) -> PodNode:
        return self.nodes[number]

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus:
        return ExitStatus(signal=9, told_by="the cluster")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    made.reached(monkeypatch)
    monkeypatch.setattr("chaos.platforms.kubernetes.client.asking._AGAIN_SECONDS", 0.01)
    Clusterd(made)
    return made


@pytest.fixture
def job(cluster: Cluster, tmp_path: Path) -> Any:
    return Job(cluster, tmp_path)


def victim_of(job: Job, kind: Any) -> Victim:
    place, given = job.nodes[0].place, MESH.get(kind, {})
    return Victim(0, ProcessIdentity(7, 1, "boot", 0), Path("none"), fault="f1", parameters=given, place=place)


def evict(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in has no subresources: an eviction deletes the pod there."""
    answer = cluster._answer

    def request(method: str, path: str, body: Any = None, **given: Any) -> dict[str, Any]:
        if path.endswith("/eviction"):
            return answer("delete", path.removesuffix("/eviction"))
        return answer(method, path, body, **given)

    monkeypatch.setattr(cluster, "_answer", request)


def shown(cluster: Cluster) -> None:
    """The cluster's controllers do their part: Chaos Mesh has made what it was told, the node is tainted."""
    for path, one in list(cluster.objects.items()):
        if "chaos-mesh.org" in path:
            done = [{"type": kind, "status": "True"} for kind in ("Selected", "AllInjected")]
            records = [{"id": "train/first/ascend", "phase": "Injected"}]
            cluster.put(path, {**one, "status": {"conditions": done, "experiment": {"containerRecords": records}}})
    node = cluster.objects[NODE_PATH]
    taints = [{"key": "node.kubernetes.io/not-ready"}]
    cluster.put(NODE_PATH, {**node, "spec": {**node["spec"], "taints": taints}})


@pytest.mark.parametrize("silence", SILENCES, ids=str)
@pytest.mark.parametrize("kind", [*CONDITIONS, node_not_ready.KIND, *PODS], ids=lambda kind: kind.name)
def test_its_evidence_is_looked_for_again(
    cluster: Cluster, job: Any, kind: Any, silence: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    evict(cluster, monkeypatch)
    victim = victim_of(job, kind)
    kind.inject(job, victim)
    shown(cluster)
    cluster.silences = [silence]
    assert kind.evidence(job, victim) is None
    assert kind.evidence(job, victim) is not None


@pytest.mark.parametrize("late", [False, True], ids=["asked in vain", "done and not answered"])
@pytest.mark.parametrize("kind", [*CONDITIONS, node_not_ready.KIND], ids=lambda kind: kind.name)
def test_it_is_made_once_the_api_answers_and_once_only(cluster: Cluster, job: Any, kind: Any, late: bool) -> None:
    victim = victim_of(job, kind)
    cluster.late = late
    before = len(cluster.objects)
    for count in range(1, 4):  # each of the first requests goes unanswered
        cluster.silences = SILENCES[:count]
        kind.inject(job, victim)
    shown(cluster)
    assert kind.evidence(job, victim) is not None
    assert len(cluster.objects) - before <= 2, "its object, and ClusterD's list"


@pytest.mark.parametrize("kind", PODS, ids=lambda kind: kind.name)
def test_an_order_that_was_not_answered_is_given_again(
    cluster: Cluster, job: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evict(cluster, monkeypatch)
    victim = victim_of(job, kind)
    cluster.silences = SILENCES[:2]
    kind.inject(job, victim)
    assert kind.evidence(job, victim)["by"] == "this run's order"


@pytest.mark.parametrize("kind", CONDITIONS, ids=lambda kind: kind.name)
def test_what_lasts_is_seen_just_before_its_end_and_at_its_end(cluster: Cluster, job: Any, kind: Any) -> None:
    victim = victim_of(job, kind)
    steps = kind.undo_steps("f1", [victim])
    kind.inject(job, victim)
    shown(cluster)
    cluster.silences = SILENCES[:2]
    assert not kind.gone(job, victim)
    cluster.silences = SILENCES[:2]
    assert kind.still(job, victim) is not None
    cluster.silences = SILENCES[:2]
    assert not kind.ended(job, victim)
    for step in steps:
        cluster.silences = list(SILENCES)
        UNDO_ACTIONS[step.action](step, UndoContext(RUN, FakeClock()))
    cluster.silences = SILENCES[:2]
    assert kind.ended(job, victim)


@pytest.mark.parametrize("kind", CONDITIONS, ids=lambda kind: kind.name)
def test_an_api_that_stays_silent_is_told_with_the_deadline(
    cluster: Cluster, job: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = victim_of(job, kind)
    kind.inject(job, victim)
    monkeypatch.setattr("chaos.platforms.kubernetes.client.asking.ANSWER_SECONDS", 0.3)
    cluster.silences = [ApiError(503, "503 not ready")] * 1000
    for look in (kind.still, kind.ended):
        with pytest.raises(ApiError, match=r"deadline 'answer' of 0.3 s: 503 not ready"):
            look(job, victim)


@pytest.mark.parametrize("kind", [*CONDITIONS, node_not_ready.KIND], ids=lambda kind: kind.name)
def test_what_the_api_refuses_is_told_at_once(cluster: Cluster, job: Any, kind: Any) -> None:
    victim = victim_of(job, kind)
    kind.inject(job, victim)
    for look in (kind.evidence, *([kind.still, kind.ended] if kind in CONDITIONS else [])):
        cluster.silences = [ApiError(403, "is forbidden")]
        with pytest.raises(ApiError, match="is forbidden"):
            look(job, victim)
        assert cluster.silences == []
