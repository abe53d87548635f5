"""A public fault that ClusterD would drop in silence is refused before it is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.platforms.kubernetes.public_fault import InvalidPublicFault, PublicFault, configmap, public_fault

NOW = 1_790_000_000_000


def message(**changes: Any) -> PublicFault:
    given: dict[str, Any] = {
        "node": "worker-1",
        "devices": (0, 1),
        "code": "220001001",
        "kind": "NPU",
        "began_ms": NOW,
        "now_ms": NOW + 5,
        "assertion": "occur",
    }
    return public_fault("run-12345678", "f1", **{**given, **changes})


def test_occurrence_and_recovery_are_of_one_fault() -> None:
    occurs, recovers = message(), message(assertion="recover", now_ms=NOW + 9)
    assert occurs.id != recovers.id
    assert occurs.faults[0].faultId == recovers.faults[0].faultId
    assert occurs.faults[0].faultTime == recovers.faults[0].faultTime == NOW


def test_the_configmap_is_what_clusterd_listens_for() -> None:
    made = configmap("name", "train", {"a": "b"}, message())
    assert made["metadata"]["labels"] == {"a": "b", "mc-consumer-publicfault": "true"}
    sent = json.loads(made["data"]["PublicFault"])
    assert (sent["version"], sent["resource"]) == ("1.0", "fd-online")
    assert sent["faults"][0]["influence"] == [{"nodeName": "worker-1", "deviceIds": [0, 1]}]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"node": "Worker_1"}, "nodeName"),
        ({"devices": ()}, "deviceIds"),
        ({"devices": (32,)}, "deviceIds"),
        ({"devices": (1, 1)}, "named twice"),
        ({"devices": tuple(range(33))}, "deviceIds"),
        ({"code": "999999999"}, "not configured in ClusterD"),
        ({"kind": "Card"}, "faultType"),
        ({"assertion": "end"}, "assertion"),
        ({"began_ms": 1_600_000_000_000}, "faultTime"),
        ({"now_ms": NOW * 10}, "timestamp"),
        ({"sender": ""}, "resource"),
    ],
)
def test_what_clusterd_would_drop_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidPublicFault, match=said):
        message(**changes)


def test_the_cluster_s_own_codes_can_be_given() -> None:
    assert message(code="999999999", codes=frozenset({"999999999"})).faults[0].faultCode == "999999999"


def test_a_message_that_no_object_can_hold_is_refused() -> None:
    fault = message().faults[0]
    influence = tuple(fault.influence[0].model_copy(update={"nodeName": f"n{i}".ljust(200, "0")}) for i in range(1000))
    faults = tuple(fault.model_copy(update={"faultId": f"fault-{i:08}", "influence": influence}) for i in range(20))
    with pytest.raises(InvalidPublicFault, match="bytes"):
        configmap("name", "train", {}, message().model_copy(update={"faults": faults}))
