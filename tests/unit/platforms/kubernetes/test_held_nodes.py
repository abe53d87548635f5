"""A node of the cluster is put back to what it was before the run, whoever had made it so, and to nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.node_hold import UnreadableHold
from chaos.platforms.kubernetes.run_client import NotOurs, RunClient

CORDON = {"spec": {"unschedulable": True}}


class Nodes:
    """One node, as the API changes it: by merge patches, each of the version that it names."""

    def __init__(self, **spec: Any) -> None:
        self.ready = True
        self.version = 1
        self.spec: dict[str, Any] = dict(spec)
        self.annotations: dict[str, str] = {"others": "stays"}
        self.meanwhile: list[Callable[[], None]] = []

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        assert path.endswith("/nodes/worker-1")
        if method == "patch":
            for one in [self.meanwhile.pop()] if self.meanwhile else []:
                one()
                self.version += 1
            if body["metadata"].get("resourceVersion") != str(self.version):
                raise ApiError(409, "the object has been modified")
            for kept, change in ((self.spec, body.get("spec")), (self.annotations, body["metadata"]["annotations"])):
                for key, value in (change or {}).items():
                    if value is None:
                        kept.pop(key, None)
                    else:
                        kept[key] = value
            self.version += 1
        metadata = {"annotations": dict(self.annotations), "resourceVersion": str(self.version)}
        status = {"conditions": [{"type": "Ready", "status": str(self.ready)}]}
        return {"metadata": metadata, "spec": json.loads(json.dumps(self.spec)), "status": status}

    def run_client(self, run: str = "run-1") -> RunClient:
        return RunClient(cast("Api", self), "train", run, ("worker-1",))


def test_a_node_is_put_back_to_what_it_was() -> None:
    nodes = Nodes()
    assert nodes.run_client().hold_node("worker-1", "f1", CORDON)
    assert nodes.spec == {"unschedulable": True}
    assert nodes.run_client().release_node("worker-1") == "released", "another process than the one that held it"
    assert (nodes.spec, nodes.annotations) == ({}, {"others": "stays"})
    assert nodes.run_client().release_node("worker-1") == "not held"


def test_what_an_administrator_had_cordoned_before_stays_cordoned() -> None:
    nodes = Nodes(unschedulable=True)
    assert not nodes.run_client().hold_node("worker-1", "f1", CORDON), "it is nothing that the run has done"
    assert nodes.run_client().release_node("worker-1") == "released"
    assert (nodes.spec, nodes.annotations) == ({"unschedulable": True}, {"others": "stays"})


def test_what_was_before_is_remembered_from_the_first_time_on() -> None:
    nodes = Nodes()
    assert nodes.run_client().hold_node("worker-1", "f2", {}), "a fault that changes only the node's status"
    assert nodes.run_client().hold_node("worker-1", "f1", CORDON)
    assert nodes.run_client().hold_node("worker-1", "f1", CORDON), "another rank of the same fault"
    assert nodes.run_client().release_node("worker-1") == "released"
    assert nodes.spec == {}


def test_what_an_administrator_does_meanwhile_stays() -> None:
    nodes = Nodes()
    nodes.run_client().hold_node("worker-1", "f1", CORDON)
    del nodes.spec["unschedulable"]
    nodes.spec["taints"] = [{"key": "repair"}]
    assert nodes.run_client().release_node("worker-1") == "released"
    assert nodes.spec == {"taints": [{"key": "repair"}]}


def test_a_change_between_the_look_and_the_patch_is_seen() -> None:
    nodes = Nodes()
    nodes.meanwhile = [lambda: nodes.spec.update(unschedulable=True)]
    assert not nodes.run_client().hold_node("worker-1", "f1", CORDON), "an administrator was quicker"
    assert nodes.run_client().release_node("worker-1") == "released"
    assert nodes.spec == {"unschedulable": True}


def test_a_node_that_the_cluster_has_no_more_has_nothing_to_be_put_back() -> None:
    class Gone(Nodes):
        def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
            raise ApiError(404, "nodes worker-1 not found")

    assert Gone().run_client().release_node("worker-1") == "not held"
    assert not Gone().run_client().holds_node("worker-1")
    with pytest.raises(ApiError):
        Gone().run_client().hold_node("worker-1", "f1", CORDON)


def test_what_another_run_holds_or_nobody_has_written_is_left_alone() -> None:
    nodes = Nodes()
    nodes.run_client("run-2").hold_node("worker-1", "f1", CORDON)
    with pytest.raises(NotOurs, match="held by run run-2"):
        nodes.run_client().hold_node("worker-1", "f1", CORDON)
    assert nodes.run_client().release_node("worker-1") == "not held"
    nodes.annotations[names.BEFORE_ANNOTATION] = "[1]"
    with pytest.raises(UnreadableHold, match="look at the node by hand"):
        nodes.run_client("run-2").release_node("worker-1")
    nodes.annotations.update({names.BEFORE_ANNOTATION: "{}", names.HELD_FOR_ANNOTATION: '{"f1": 7}'})
    with pytest.raises(UnreadableHold, match="held-for is not as a run writes it"):
        nodes.run_client("run-2").release_node("worker-1")
    assert nodes.spec == {"unschedulable": True}


@pytest.mark.parametrize(("first", "last"), [("f1", "f2"), ("f2", "f1")])
def test_a_node_that_two_faults_hold_is_put_back_with_the_last(first: str, last: str) -> None:
    nodes = Nodes()
    for fault in ("f1", "f2"):
        assert nodes.run_client().hold_node("worker-1", fault, CORDON)
    assert nodes.run_client().release_node("worker-1", first) == "released"
    assert nodes.run_client().release_node("worker-1", first) == "not held"
    assert nodes.spec == {"unschedulable": True}
    assert (nodes.run_client().holds_node("worker-1", first), nodes.run_client().holds_node("worker-1", last)) == (
        False,
        True,
    )
    assert nodes.run_client().release_node("worker-1", last) == "released"
    assert (nodes.spec, nodes.annotations) == ({}, {"others": "stays"})


def test_each_fault_puts_back_its_own_part_only() -> None:
    nodes = Nodes()
    assert nodes.run_client().hold_node("worker-1", "f1", {}, status=True)
    assert nodes.run_client().hold_node("worker-1", "f2", CORDON)
    nodes.ready = False
    assert nodes.run_client().release_node("worker-1", "f2") == "released", "a cordon waits for no kubelet"
    assert nodes.spec == {}
    assert nodes.run_client().release_node("worker-1", "f1") == "awaited"
    nodes.ready = True
    assert nodes.run_client().release_node("worker-1", "f1") == "released"
    assert nodes.annotations == {"others": "stays"}


def test_a_node_stays_marked_until_its_kubelet_is_ready_and_nothing_else_of_it_is_held_meanwhile() -> None:
    nodes = Nodes()
    nodes.run_client().hold_node("worker-1", "f1", CORDON, status=True)
    nodes.ready = False
    for _ in range(2):
        assert nodes.run_client().release_node("worker-1") == "awaited"
        assert nodes.spec == {} and nodes.run_client().holds_node("worker-1")
    nodes.spec["unschedulable"] = True  # by an administrator who looks after the node
    nodes.ready = True
    assert nodes.run_client().release_node("worker-1") == "released"
    assert (nodes.spec, nodes.annotations) == ({"unschedulable": True}, {"others": "stays"})


def test_a_mark_that_names_no_fault_is_taken_away_by_any_when_the_kubelet_is_ready() -> None:
    nodes = Nodes(unschedulable=True)
    before = json.dumps({"unschedulable": {"before": None, "made": True}})
    nodes.annotations.update({names.HELD_ANNOTATION: "run-1", names.BEFORE_ANNOTATION: before})
    nodes.ready = False
    assert nodes.run_client().release_node("worker-1", "f1") == "awaited"
    assert nodes.spec == {}
    nodes.ready = True
    assert nodes.run_client().release_node("worker-1", "f2") == "released"
    assert nodes.annotations == {"others": "stays"}
