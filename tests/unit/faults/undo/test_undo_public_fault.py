"""A public fault is undone when ClusterD lists it no more, whatever became of the message that it occurs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.faults.cluster.public_fault import KIND
from chaos.faults.kind import Victim
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.kubernetes.client.api import ApiError
from chaos.platforms.kubernetes.fault_message import (
    STATISTICS,
    STATISTICS_KEY,
    STATISTICS_NAMESPACE,
    is_listed,
    send,
)
from chaos.platforms.kubernetes.platform import KubernetesPlatform
from chaos.platforms.kubernetes.public_fault import public_fault
from chaos.platforms.kubernetes.resources import CONFIGMAP
from tests.unit.conftest import FakeClock
from tests.unit.platforms.kubernetes.standin_api import PLACE, Cluster, Clusterd

RUN = "run-12345678"
NOW = 1_790_000_000_000
GIVEN: dict[str, Any] = {"code": "010001002", "type": "Network", "devices": [2, 3], "sender": "pingmesh"}


class Clock(FakeClock):
    """In a year that ClusterD takes."""

    def wall(self) -> int:
        return NOW * 1_000_000 + self.now


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    made.reached(monkeypatch)
    return made


@pytest.fixture
def clusterd(cluster: Cluster) -> Clusterd:
    made = Clusterd(cluster)
    fields = {**GIVEN, "devices": tuple(GIVEN["devices"]), "kind": GIVEN["type"]}
    del fields["type"]
    message = public_fault(RUN, "f1", node="worker-1", **fields, began_ms=NOW, now_ms=NOW, assertion="occur")
    send(cluster.run_client(), "f1", "worker-1", message)
    return made


def step() -> UndoStep:
    victim = Victim(0, ProcessIdentity(7, 1, "boot", 0), Path("none"), fault="f1", parameters=GIVEN, place=PLACE)
    (made,) = KIND.undo_steps("f1", [victim])
    return made


def undone(undo_step: UndoStep) -> str:
    return UNDO_ACTIONS[undo_step.action](undo_step, UndoContext(RUN, Clock()))


def taken_away() -> str:
    """As the run's own undo step does it, at the end."""
    return KubernetesPlatform().put_back(PLACE, RUN, Clock())


def listed(cluster: Cluster) -> bool:
    return is_listed(cluster.run_client().api, "worker-1", f"{RUN}.f1")


def test_a_message_that_is_not_heeded_stays_until_heal_has_sent_it_again(cluster: Cluster, clusterd: Clusterd) -> None:
    clusterd.deaf = True
    with pytest.raises(CannotUndo, match="still lists it after 60 s"):
        undone(step())
    assert "left ConfigMap chaos-fault-" in taken_away()
    assert [one for one in KubernetesPlatform().left(PLACE, RUN) if one.startswith("ConfigMap chaos-fault-")]
    with pytest.raises(CannotUndo, match="still lists it"):
        undone(step())
    clusterd.deaf = False
    assert "no longer lists it" in undone(step())
    assert not listed(cluster)
    assert KubernetesPlatform().left(PLACE, RUN) == []


@pytest.mark.parametrize("described", [True, False], ids=["a step of today", "an old step"])
def test_a_fault_whose_message_is_no_more_is_told_to_have_recovered(
    cluster: Cluster, clusterd: Clusterd, described: bool
) -> None:
    run_client, undo_step = cluster.run_client(), step()
    if not described:
        del undo_step.arguments["message"]
    assert listed(cluster)
    for found in list(run_client.list(CONFIGMAP)):
        run_client.delete(found)
    clusterd.deaf = True
    with pytest.raises(CannotUndo, match="still lists it"):
        undone(undo_step)
    for found in list(run_client.list(CONFIGMAP)):
        run_client.delete(found)
    assert listed(cluster)
    clusterd.deaf = False
    assert "no longer lists it" in undone(undo_step)
    assert not listed(cluster) and list(run_client.list(CONFIGMAP)) == []
    assert "no message about fault f1 is there, and ClusterD lists no fault" in undone(undo_step)


def test_what_its_list_does_not_say_the_step_does(cluster: Cluster) -> None:
    """A list that names no more than the fault's id, as an older ClusterD may have it."""
    path = CONFIGMAP.path(STATISTICS_NAMESPACE, STATISTICS)
    listing = f'{{"worker-1": [{{"faultId": "{RUN}.f1"}}]}}'
    cluster.put(path, {"metadata": {"name": STATISTICS}, "data": {STATISTICS_KEY: listing}})
    with pytest.raises(CannotUndo, match="still lists it"):
        undone(step())
    (sent,) = cluster.run_client().list(CONFIGMAP)
    message = sent.object["data"]["PublicFault"]
    assert all(said in message for said in ('"resource":"pingmesh"', '"faultCode":"010001002"', '"deviceIds":[2,3]'))
    assert '"assertion":"recover"' in message


def test_where_its_list_cannot_be_read_nothing_counts_as_undone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = CONFIGMAP.path(STATISTICS_NAMESPACE, STATISTICS)
    answer = cluster.request

    def request(method: str, asked: str, body: Any = None, **given: Any) -> dict[str, Any]:
        if asked == path:
            raise ApiError(403, "configmaps is forbidden")
        return answer(method, asked, body, **given)

    monkeypatch.setattr(cluster, "request", request)
    with pytest.raises(CannotUndo, match="may still hold fault f1"):
        undone(step())
