"""A rank's pod is found by the rank table, or by the pods' numbers; what would be ambiguous is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.platforms.kubernetes.ranks import UnreadableRankTable, node_number, ranks_to_pods, read_rank_table


def table(**changes: Any) -> str:
    """A rank table of two servers with two NPUs each, as Ascend Operator writes it."""
    servers = [
        {
            "device": [
                {"device_id": str(number), "device_ip": f"10.0.{node}.{number}", "rank_id": str(2 * node + number)}
                for number in range(2)
            ],
            "server_id": f"192.168.0.{node}",
            "host_ip": f"192.168.0.{node}",
            "container_ip": f"172.16.0.{node}",
        }
        for node in range(2)
    ]
    return json.dumps({"status": "completed", "server_list": servers, "server_count": "2", "version": "1.0", **changes})


def pod(name: str, ip: str | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "status": {"podIP": ip} if ip else {}}


def with_environment(container: str) -> dict[str, Any]:
    env = [{"name": "MS_NODE_RANK", "value": "2"}]
    return {"metadata": {}, "spec": {"containers": [{"name": container, "env": env}]}}


def test_ranks_are_found_by_the_address_of_their_pod() -> None:
    servers = read_rank_table(table())
    pods = [pod("b", "172.16.0.1"), pod("a", "172.16.0.0"), pod("scheduler", "172.16.0.9"), pod("pending")]
    assert ranks_to_pods(pods, servers=servers, ranks=4, nodes=2) == {0: "a", 1: "a", 2: "b", 3: "b"}


def test_a_table_that_is_still_written_says_nothing() -> None:
    assert read_rank_table('{"status": "initializing"}') is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "no object"),
        ('{"status": "completed", "version": "2.0", "rank_list": []}', "version 2.0 has no server_list"),
        (table(server_list=[{"device": []}]), "no list of devices"),
        (table(server_list=[{"device": [{"device_id": "0", "rank_id": "1"}]}]), "its ranks are"),
        (table(server_list=[{"device": [{"device_id": "0", "rank_id": "x"}]}]), "rank_id is 'x'"),
        (table(server_list=[{"device": [{"device_id": "0", "rank_id": "0"}] * 2}]), "rank 0 is listed twice"),
    ],
)
def test_a_table_that_cannot_be_relied_on_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnreadableRankTable, match=said):
        read_rank_table(text)


@pytest.mark.parametrize(
    ("found", "number"),
    [
        (pod("a", labels={"chaos-ascend.io/node": "1"}), 1),
        (pod("a", annotations={"hccl/rankIndex": "3"}), 3),
        (
            {
                "metadata": {},
                "spec": {"containers": [{"name": "ascend", "env": [{"name": "MS_NODE_RANK", "value": "2"}]}]},
            },
            2,
        ),
        (
            {
                "metadata": {},
                "spec": {"containers": [{"name": "side", "env": [{"name": "MS_NODE_RANK", "value": "2"}]}]},
            },
            None,
        ),
        (pod("a", labels={"chaos-ascend.io/node": "-1"}), None),
        (pod("a"), None),
    ],
)
def test_a_pod_says_which_node_it_is(found: dict[str, Any], number: int | None) -> None:
    assert node_number(found) == number


def test_without_a_table_the_pods_numbers_count_and_one_that_goes_does_not() -> None:
    def numbered(name: str, node: int, **more: Any) -> dict[str, Any]:
        return pod(name, labels={"chaos-ascend.io/node": str(node)}, **more)

    pods = [numbered("a", 0), numbered("old", 1, deletionTimestamp="2026-01-01T00:00:00Z"), numbered("new", 1)]
    assert ranks_to_pods(pods, servers=None, ranks=4, nodes=2) == {0: "a", 1: "a", 2: "new", 3: "new"}
    with pytest.raises(UnreadableRankTable, match="rank 0 would be in two pods, a and b"):
        ranks_to_pods([numbered("a", 0), numbered("b", 0)], servers=None, ranks=4, nodes=2)
