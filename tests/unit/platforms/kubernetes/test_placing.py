"""Where the ranks are: by the rank table or the pods' numbers, and never where the plan does not have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes.placing import TABLE_SECONDS, placing, settled_placing
from tests.unit.conftest import FakeClock


def pod(node: int, address: str | None = None) -> dict[str, Any]:
    metadata = {"name": f"pod-{node}", "annotations": {"hccl/rankIndex": str(node)}}
    return {"metadata": metadata, "status": {"podIP": address or f"10.0.0.{node}"}}


PODS = {0: pod(0), 1: pod(1)}
PLANNED = {0: "pod-0", 1: "pod-0", 2: "pod-1", 3: "pod-1"}


def table(*servers: tuple[str, list[int]], status: str = "completed") -> str:
    listed = [
        {"container_ip": address, "device": [{"rank_id": str(rank), "device_id": "0"} for rank in ranks]}
        for address, ranks in servers
    ]
    return json.dumps({"status": status, "version": "1.0", "server_list": listed})


GOOD = table(("10.0.0.0", [0, 1]), ("10.0.0.1", [2, 3]))


def test_the_table_says_where_ranks_are_and_the_pods_where_there_is_none() -> None:
    by_table = placing(PODS, table=GOOD, ranks=4, nodes=2)
    assert (by_table.by, by_table.pods) == ("rank table", PLANNED)
    by_number = placing(PODS, table=None, ranks=4, nodes=2)
    assert (by_number.by, by_number.pods) == ("pods", PLANNED)


def test_a_table_that_is_still_written_or_of_pods_before_says_nothing() -> None:
    for text in (table(("10.0.0.0", [0, 1]), status="initializing"), table(("10.1.1.1", [0, 1]), ("10.1.1.2", [2, 3]))):
        assert placing(PODS, table=text, ranks=4, nodes=2).by == "pods"


def test_a_table_that_knows_one_of_the_pods_only_tells_of_its_ranks() -> None:
    after = {0: pod(0), 1: pod(1, "10.0.0.9")}
    found = placing(after, table=GOOD, ranks=4, nodes=2)
    assert (found.by, found.pods) == ("rank table", {0: "pod-0", 1: "pod-0"})


def test_ranks_elsewhere_than_planned_are_refused() -> None:
    swapped = table(("10.0.0.1", [0, 1]), ("10.0.0.0", [2, 3]))
    with pytest.raises(PlatformError, match=r"rank 0 in pod pod-1, and the plan in pod-0 \(node 0\)"):
        placing(PODS, table=swapped, ranks=4, nodes=2)


@pytest.mark.parametrize("text", ["{", "[]", table(("10.0.0.0", [0, 0])), table(("10.0.0.0", [1, 2]))])
def test_a_table_that_cannot_be_read_is_no_answer(text: str) -> None:
    with pytest.raises(PlatformError, match="is unknown"):
        placing(PODS, table=text, ranks=4, nodes=2)


def test_two_pods_of_one_number_are_refused() -> None:
    with pytest.raises(PlatformError, match="rank 0 would be in two pods"):
        placing({0: pod(0), 1: pod(0)}, table=None, ranks=4, nodes=2)


WRITTEN = table(status="initializing")
OF_ONE_POD = table(("10.0.0.0", [0, 1]), ("10.0.0.9", [2, 3]))


def settled(*texts: str | None) -> tuple[str, float, int]:
    """What says where the ranks are when one text after the other is there, after how many seconds and questions."""
    clock, asked = FakeClock(), iter(texts)
    before, told = clock.mono(), [*texts]
    found = settled_placing(PODS, ask=lambda: next(asked, told[-1]), ranks=4, nodes=2, clock=clock)
    return found.by, round((clock.mono() - before) / 1e9, 3), len(found.pods)


def test_a_table_that_does_not_know_all_pods_yet_is_waited_for() -> None:
    assert settled(GOOD) == ("rank table", 0.0, 4)
    assert settled(WRITTEN, OF_ONE_POD, GOOD) == ("rank table", 1.0, 4)


def test_no_table_is_waited_for_where_there_is_none_and_none_for_ever() -> None:
    assert settled(None) == ("pods", 0.0, 4)
    by, seconds, ranks = settled(WRITTEN)
    assert (by, ranks) == ("pods", 4) and TABLE_SECONDS <= seconds < TABLE_SECONDS + 2
    assert settled(OF_ONE_POD)[::2] == ("rank table", 2)


def test_a_table_that_comes_late_and_has_them_elsewhere_refuses_the_run() -> None:
    with pytest.raises(PlatformError, match="a fault would hit other ranks than planned"):
        settled(WRITTEN, table(("10.0.0.1", [0, 1]), ("10.0.0.0", [2, 3])))
