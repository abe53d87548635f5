"""Each fault of a cluster lands with evidence and is put back, also by another process than the one that made it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.faults.cluster import (
    in_cluster,
    node_cordon,
    node_drain,
    node_not_ready,
    pod_delete,
    pod_evict,
    public_fault,
)
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.kubernetes.client.api import Api
from chaos.platforms.kubernetes.facts import pod_state
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.pods import Pods
from chaos.platforms.kubernetes.resources import CONFIGMAP, POD
from chaos.platforms.kubernetes.run_client import NotOurs, RunClient
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.scenario.models.job import Job
from chaos.scenario.models.kubernetes import Kubernetes
from tests.cluster.control_plane import ControlPlane
from tests.cluster.standin_clusterd import Clusterd
from tests.cluster.standin_kubelet import Kubelet

pytestmark = pytest.mark.processes

NODES = ("worker-1", "worker-2", "worker-3")


@dataclass
class Trial:
    """A run's pods without ranks in them: what a fault sees of a job."""

    run_client: RunClient
    pods: Pods
    place: dict[str, Any]
    made: PodNode

    def node(self, number: int) -> PodNode:
        assert number == self.made.number
        return self.made

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        """As the platform has it: what ran in a pod ended with it."""
        del identity
        return self.made.ended() if self.made.state() == "gone" else None

    def victim(self, **parameters: Any) -> Victim:
        identity = ProcessIdentity(7, 1, "boot", self.made.number)
        return Victim(1, identity, Path("none"), fault="f1", parameters=parameters, place=self.made.place)

    def lands(self, kind: FaultKind, victim: Victim) -> tuple[list[UndoStep], dict[str, Any]]:
        steps = kind.undo_steps("f1", [victim])
        shown: list[dict[str, Any] | None] = [None]

        def proven() -> bool:
            shown[0] = kind.evidence(self, victim)  # type: ignore[arg-type]
            return shown[0] is not None

        kind.inject(self, victim)  # type: ignore[arg-type]
        wait_for("evidence", proven, seconds=60, clock=SYSTEM_CLOCK)
        assert shown[0] is not None
        return steps, shown[0]

    def undone(self, steps: list[UndoStep]) -> list[str]:
        """Undo as heal does it: with nothing but the steps, and a connection of its own."""
        context = UndoContext(self.run_client.run, SYSTEM_CLOCK)
        return [UNDO_ACTIONS[step.action](UndoStep(**json.loads(json.dumps(vars(step)))), context) for step in steps]


@pytest.fixture
def trial(plane: ControlPlane, api: Api, workers: Kubelet, namespace: str, tmp_path: Path) -> Any:
    settings = Kubernetes.model_validate({"namespace": namespace, "image": "none", "nodes": list(NODES)})
    run_client = RunClient(api, namespace, f"run-{namespace}", NODES)
    pods = Pods(run_client, tmp_path, "job", SYSTEM_CLOCK)
    for manifest in manifests(settings, Job(steps=1), 1, Named(run_client.run, "trial")):
        run_client.create(manifest)

    def runs() -> bool:
        pod = pods.of_node(0)
        return pod is not None and pod.phase == "Running"

    wait_for("pod", runs, seconds=60, clock=SYSTEM_CLOCK)
    seen = pods.of_node(0)
    assert seen is not None
    found = run_client.find(POD, seen.pod)
    assert found is not None
    cluster = {"kubeconfig": str(plane.kubeconfig), "settings": settings.model_dump(mode="json")}
    state = pod_state(found.object)
    node = PodNode(0, found, state, "127.0.0.1", tmp_path, None, run_client, pods, cluster)  # type: ignore[arg-type]
    try:
        yield Trial(run_client, pods, node.place, node)
    finally:
        pods.close()


@pytest.mark.parametrize("kind", [pod_delete.KIND, pod_evict.KIND])
def test_a_pod_goes_and_another_comes(trial: Trial, kind: FaultKind) -> None:
    steps, evidence = trial.lands(kind, trial.victim())
    assert steps == []
    assert (evidence["signal"], evidence["pod"]["uid"]) == (9, trial.made.pod.uid)
    wait_for("another", lambda: trial.pods.of_node(0) is not None, seconds=60, clock=SYSTEM_CLOCK)
    after = trial.pods.of_node(0)
    assert after is not None and after.uid != trial.made.pod.uid


def test_a_drained_node_takes_no_pods_until_it_is_released(trial: Trial, api: Api) -> None:
    host = str(trial.made.first.host)
    steps, evidence = trial.lands(node_drain.KIND, trial.victim())
    assert evidence["unschedulable"] is True
    wait_for("elsewhere", lambda: _host(trial) not in (None, host), seconds=60, clock=SYSTEM_CLOCK)
    assert trial.undone(steps) == [f"released node {host}"]
    assert "unschedulable" not in api.request("get", f"/api/v1/nodes/{host}")["spec"]
    assert trial.undone(steps) == [f"node {host} is not held by this run for this fault"]


def _host(trial: Trial) -> str | None:
    pod = trial.pods.of_node(0)
    return None if pod is None or pod.phase != "Running" else pod.host


def test_a_cordoned_node_is_released(trial: Trial, api: Api) -> None:
    host = str(trial.made.first.host)
    steps, evidence = trial.lands(node_cordon.KIND, trial.victim())
    assert evidence == {"signal": None, "host": host, "unschedulable": True}
    assert trial.undone(steps) == [f"released node {host}"]
    assert "unschedulable" not in api.request("get", f"/api/v1/nodes/{host}")["spec"]


def test_a_node_that_is_said_to_be_lost_is_tainted_by_the_cluster_and_comes_back(trial: Trial, api: Api) -> None:
    host = str(trial.made.first.host)
    steps, evidence = trial.lands(node_not_ready.KIND, trial.victim())
    assert "node.kubernetes.io/not-ready" in evidence["taints"]
    assert trial.undone(steps) == [f"released node {host}"]

    def ready() -> bool:
        return not api.request("get", f"/api/v1/nodes/{host}")["spec"].get("taints")

    wait_for("no taint", ready, seconds=60, clock=SYSTEM_CLOCK)


def test_a_node_that_the_scenario_does_not_name_is_not_touched(trial: Trial) -> None:
    trial.made.run_client = RunClient(trial.run_client.api, trial.run_client.namespace, trial.run_client.run, ())
    with pytest.raises(NotOurs, match="not among cluster"):
        node_cordon.KIND.inject(trial, trial.victim())  # type: ignore[arg-type]


def test_a_public_fault_is_proved_by_clusterd_and_told_to_have_recovered(trial: Trial, api: Api) -> None:
    clusterd, kind, victim = Clusterd(api, trial.run_client.namespace), public_fault.KIND, trial.victim(devices=[0, 3])
    steps = kind.undo_steps("f1", [victim])
    kind.inject(trial, victim)  # type: ignore[arg-type]
    assert kind.evidence(trial, victim) is None, "it counts only when ClusterD holds it"  # type: ignore[arg-type]
    clusterd.look()
    evidence = kind.evidence(trial, victim)  # type: ignore[arg-type]
    assert evidence is not None and evidence["fault id"] == f"{trial.run_client.run}.f1"
    heeds = Heeds(clusterd)
    context = UndoContext(trial.run_client.run, heeds)
    assert "no longer lists it" in UNDO_ACTIONS[in_cluster.RECOVER_PUBLIC_FAULT](steps[0], context)
    assert kind.evidence(trial, victim) is None  # type: ignore[arg-type]
    assert list(trial.run_client.list(CONFIGMAP)) == []
    assert "no message" in UNDO_ACTIONS[in_cluster.RECOVER_PUBLIC_FAULT](steps[0], context)


class Heeds:
    """The clock; while somebody waits, ClusterD looks."""

    def __init__(self, clusterd: Clusterd) -> None:
        self._clusterd = clusterd

    def mono(self) -> int:
        return SYSTEM_CLOCK.mono()

    def wall(self) -> int:
        return SYSTEM_CLOCK.wall()

    def sleep(self, seconds: float) -> None:
        self._clusterd.look()
        SYSTEM_CLOCK.sleep(seconds)


def test_a_public_fault_that_clusterd_still_holds_is_not_healed(
    trial: Trial, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusterd, kind, victim = Clusterd(api, trial.run_client.namespace), public_fault.KIND, trial.victim()
    steps = kind.undo_steps("f1", [victim])
    kind.inject(trial, victim)  # type: ignore[arg-type]
    clusterd.look()
    monkeypatch.setattr("chaos.faults.cluster.undo.RECOVERED_SECONDS", 0.5)
    with pytest.raises(CannotUndo, match="still lists it"):
        UNDO_ACTIONS[steps[0].action](steps[0], UndoContext(trial.run_client.run, SYSTEM_CLOCK))


@pytest.mark.parametrize(
    ("parameters", "said"), [({"code": "999999999"}, "not configured"), ({"devices": [40]}, "deviceIds")]
)
def test_a_public_fault_that_would_be_dropped_is_missed(trial: Trial, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(FaultMissed, match=said):
        public_fault.KIND.inject(trial, trial.victim(**parameters))  # type: ignore[arg-type]
    assert list(trial.run_client.list(CONFIGMAP)) == []
