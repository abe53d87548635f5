"""An object of Chaos Mesh is its run's alone, by its name too, and is deleted by the name that its undo step has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from chaos.faults.cluster.pod_network_loss import KIND
from chaos.faults.kind import Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.kubernetes.facts import pod_state
from chaos.platforms.kubernetes.pod_node import PodNode
from chaos.platforms.kubernetes.resources import NETWORK_CHAOS
from tests.unit.conftest import FakeClock
from tests.unit.platforms.kubernetes.standin_api import SETTINGS, Cluster

RUNS = ("run-12345678", "run-" + 59 * "x")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    made.reached(monkeypatch)
    return made


class TwoPods:
    """A job of two pods; the rank that is hit is in the second."""

    def __init__(self, cluster: Cluster, run: str) -> None:
        self.run_client, unused = cluster.run_client(run), cast("Any", None)
        fields = {"kubeconfig": None, "settings": SETTINGS}
        made = []
        for number in range(2):
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{run}-{number}"}}
            found = self.run_client.create({**pod, "spec": {"nodeName": "worker-1"}})
            state = pod_state(found.object)
            made.append(PodNode(number, found, state, "127.0.0.1", Path("p"), unused, self.run_client, unused, fields))
        self.nodes = tuple(made)

    def node(self, number: int) -> PodNode:
        return self.nodes[number]

    def made(self) -> UndoStep:
        identity, place = ProcessIdentity(7, 1, "boot", 1), self.nodes[1].place
        victim = Victim(1, identity, Path("none"), fault="f1", parameters={"percent": 5}, place=place)
        (step,) = KIND.undo_steps("f1", [victim])
        KIND.inject(cast("Job", self), victim)
        return step


def undone(step: UndoStep, run: str) -> str:
    return UNDO_ACTIONS[step.action](step, UndoContext(run, FakeClock()))


def test_two_runs_in_one_namespace_have_objects_of_their_own_for_faults_of_one_id(cluster: Cluster) -> None:
    steps = [TwoPods(cluster, run).made() for run in RUNS]
    names = [step.arguments["name"] for step in steps]
    for run, step, name in zip(RUNS, steps, names, strict=True):
        assert [one.name for one in cluster.run_client(run).list(NETWORK_CHAOS)] == [name]
        assert "has taken it back" in undone(step, run)
        assert list(cluster.run_client(run).list(NETWORK_CHAOS)) == []
    assert len(set(names)) == 2 and all(len(name) <= 63 for name in names)


def test_an_old_step_finds_the_object_by_the_name_that_it_has(cluster: Cluster) -> None:
    run_client, name = cluster.run_client(RUNS[0]), "chaos-mesh-0123456789abcdef"
    metadata = {"name": name, "namespace": "train"}
    kind = {"apiVersion": NETWORK_CHAOS.api_version, "kind": NETWORK_CHAOS.kind}
    run_client.create({**kind, "metadata": metadata, "spec": {}})
    arguments = {"kubeconfig": None, "settings": SETTINGS, "kind": NETWORK_CHAOS.kind, "name": name}
    step = UndoStep("f1-mesh-1", "f1", "delete-mesh-object", arguments)
    assert undone(step, RUNS[0]) == f"deleted NetworkChaos {name}, and Chaos Mesh has taken it back"
    assert list(run_client.list(NETWORK_CHAOS)) == []
