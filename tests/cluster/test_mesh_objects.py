"""Objects of Chaos Mesh on a real API server: what is made, what counts as proof, and that it goes.

The definitions refuse what Chaos Mesh's do; its controller is played (the status, and the finalizer that keeps an
object until the fault has been taken back). Nothing happens to a network or a file here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.doctor import Machine, probe
from chaos.faults.cluster import pod_dns_gone, pod_io_delay, pod_network_delay, pod_network_loss, pod_network_partition
from chaos.faults.cluster.on_mesh import OnMesh
from chaos.faults.kind import FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.kubernetes.client.api import Api
from chaos.platforms.kubernetes.facts import pod_state
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import POD
from chaos.platforms.kubernetes.run_client import RunClient
from chaos.scenario.models.kubernetes import Kubernetes
from tests.cluster import crds
from tests.cluster.control_plane import ControlPlane
from tests.cluster.standin_mesh import Mesh

pytestmark = pytest.mark.processes

GIVEN: dict[str, dict[str, Any]] = {
    "pod-network-delay": {"latency": 20, "jitter": 5},
    "pod-network-loss": {"percent": 5},
    "pod-network-partition": {"seconds": 1, "direction": "to"},
    "pod-io-delay": {"latency": 50},
    "pod-dns-gone": {},
}
KINDS: list[OnMesh] = [
    *(pod_network_delay.KIND, pod_network_loss.KIND, pod_network_partition.KIND),
    *(pod_io_delay.KIND, pod_dns_gone.KIND),
]
SPECS: dict[str, dict[str, Any]] = {
    "pod-network-delay": {"action": "delay", "delay": {"latency": "20ms", "jitter": "5ms"}},
    "pod-network-loss": {"action": "loss", "loss": {"loss": "5"}},
    "pod-network-partition": {"action": "partition", "direction": "to"},
    "pod-io-delay": {"action": "latency", "delay": "50ms", "volumePath": "/data", "containerNames": ["ascend"]},
    "pod-dns-gone": {"action": "error", "patterns": ["*"], "containerNames": ["ascend"]},
}


class Pair:
    """Two pods of a run, without ranks in them, and a rank in the second."""

    def __init__(self, plane: ControlPlane, run_client: RunClient, directory: Path) -> None:
        self.run_client = run_client
        spec = {"containers": [{"name": "ascend", "image": "none"}], "automountServiceAccountToken": False}
        fields = {"namespace": run_client.namespace, "image": "none", "volume": {"path": "/data", "host_path": "/data"}}
        settings = Kubernetes.model_validate(fields).model_dump(mode="json")
        cluster = {"kubeconfig": str(plane.kubeconfig), "settings": settings}
        found = [
            run_client.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
            for name in ("first", "second")
        ]
        pods: Any = SimpleNamespace()
        helper: Any = None
        self.nodes = tuple(
            PodNode(number, one, pod_state(one.object), "127.0.0.1", directory, helper, run_client, pods, cluster)
            for number, one in enumerate(found)
        )

    def node(self, number: int) -> PodNode:
        return self.nodes[number]

    def victim(self, **parameters: Any) -> Victim:
        place = self.nodes[1].place
        return Victim(2, ProcessIdentity(7, 1, "boot", 1), Path("none"), fault="f1", parameters=parameters, place=place)


@pytest.fixture
def pair(plane: ControlPlane, api: Api, run_client: RunClient, tmp_path: Path) -> Iterator[Pair]:
    crds.define(api, *crds.CHAOS_MESH)
    made = Pair(plane, run_client, tmp_path)
    yield made
    for pod in run_client.list(POD):
        run_client.delete(pod, grace_seconds=0)


class Looks:
    """The clock; while somebody waits, Chaos Mesh looks."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self.mono, self.wall = SYSTEM_CLOCK.mono, SYSTEM_CLOCK.wall

    def sleep(self, seconds: float) -> None:
        self._mesh.look()
        SYSTEM_CLOCK.sleep(seconds)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_is_made_proven_by_its_status_and_taken_back(kind: Any, pair: Any, api: Api) -> None:
    mesh, victim = Mesh(api, pair.run_client.namespace), pair.victim(**GIVEN[kind.name])
    (step,) = kind.undo_steps("f1", [victim])
    for _ in range(2):  # a second rank of the same pod makes no other object
        kind.inject(pair, victim)
    (made,) = pair.run_client.list(kind.resource)
    spec = made.object["spec"]
    assert spec["selector"] == {"pods": {pair.run_client.namespace: ["second"]}}
    assert {key: spec[key] for key in SPECS[kind.name]} == SPECS[kind.name]
    if "target" in spec:
        assert spec["target"]["selector"] == {"pods": {pair.run_client.namespace: ["first"]}}
    assert kind.evidence(pair, victim) is None, "it counts only when Chaos Mesh says that it is made"
    mesh.look()
    evidence = kind.evidence(pair, victim)
    assert evidence["pod"]["uid"] == pair.nodes[1].pod.uid and evidence["injected"]
    assert not kind.ended(pair, victim)
    context = UndoContext(pair.run_client.run, Looks(mesh))
    assert "has taken it back" in UNDO_ACTIONS[step.action](step, context)
    assert kind.ended(pair, victim) and kind.evidence(pair, victim) is None
    assert "there is no" in UNDO_ACTIONS[step.action](step, context)


def test_what_chaos_mesh_cannot_take_back_is_not_healed(pair: Any, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, mesh = pod_network_loss.KIND, Mesh(api, pair.run_client.namespace)
    victim = pair.victim(percent=5)
    kind.inject(pair, victim)
    mesh.look()
    mesh.stuck = True
    monkeypatch.setattr("chaos.faults.cluster.undo.RECOVERED_SECONDS", 0.5)
    (step,) = kind.undo_steps("f1", [victim])
    with pytest.raises(CannotUndo, match="has not taken the fault back"):
        UNDO_ACTIONS[step.action](step, UndoContext(pair.run_client.run, Looks(mesh)))
    mesh.stuck = False
    assert "has taken it back" in UNDO_ACTIONS[step.action](step, UndoContext(pair.run_client.run, Looks(mesh)))


def test_an_object_that_the_definition_refuses_is_a_fault_that_was_missed(pair: Any) -> None:
    with pytest.raises(FaultMissed, match="does not take the object"):
        pod_network_partition.KIND.inject(pair, pair.victim(seconds=1, direction="sideways"))


def test_another_run_s_object_of_the_same_name_is_left_alone(pair: Any, api: Api) -> None:
    kind, victim = pod_network_loss.KIND, pair.victim(percent=5)
    other = RunClient(api, pair.run_client.namespace, "run-other")
    (step,) = kind.undo_steps("f1", [victim])
    other.create(kind.manifest(str(step.arguments["name"]), pair.nodes[1], pair, victim))
    with pytest.raises(CannotUndo, match="does not carry this run's label"):
        UNDO_ACTIONS[step.action](step, UndoContext(pair.run_client.run, SYSTEM_CLOCK))
    assert [one.name for one in other.list(kind.resource)] == [step.arguments["name"]]


def test_the_probe_looks_at_the_scenario_s_cluster_and_not_at_the_current_one(
    plane: ControlPlane, api: Api, pair: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import yaml

    content = yaml.safe_load(plane.kubeconfig.read_text("utf-8"))
    content["clusters"].append({"name": "none", "cluster": {"server": "https://127.0.0.1:9"}})
    content["contexts"].append({"name": "elsewhere", "context": {"cluster": "none", "user": "test"}})
    content["current-context"] = "elsewhere"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content), "utf-8")
    # The client reads KUBECONFIG when it is imported.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    (found,) = probe(["chaos-mesh"], Machine(settings=Kubernetes(namespace="train", context="test")))
    assert found.ok and plane.server in found.seen
    (elsewhere,) = probe(["chaos-mesh"], Machine())
    assert not elsewhere.ok
