"""A fault of a node is proved by what the platform says of that node, and by nothing less."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.on_node import PROOFS, node_doubts
from chaos.history.event import Event
from chaos.plan.model import PlannedFault

LANDING = Event("fault.landed", 1, 1, "harness", 1, "train", None, None, {}, "history/harness.jsonl:7")
GOOD = {
    "node-kill": {"status": "exited", "connected": True, "exit_code": 137, "oom_killed": False},
    "node-pause": {"status": "paused", "connected": True},
    "node-disconnect": {"status": "running", "connected": False},
}


def doubts(kind: str, **evidence: Any) -> list[str]:
    fault = PlannedFault("node", kind, (2, 3), {}, {}, None, 1, "death")
    return [text for text, _ in node_doubts(fault, LANDING, {"rank": 2, **evidence})]


@pytest.mark.parametrize("kind", PROOFS)
def test_only_the_platforms_word_proves_it(kind: str) -> None:
    assert doubts(kind, node=GOOD[kind]) == []
    for other, shown in GOOD.items():
        if other != kind:
            assert len(doubts(kind, node=shown)) == 1
    nothings: list[dict[str, Any]] = [{}, {"node": None}, {"node": "exited"}, {"node": {}}]
    for nothing in nothings:
        assert "is not shown to be" in doubts(kind, **nothing)[0]


@pytest.mark.parametrize("other", [{"oom_killed": True}, {"exit_code": 0}, {"exit_code": None}, {"oom_killed": None}])
def test_an_end_for_want_of_memory_or_by_itself_is_no_kill(other: dict[str, Any]) -> None:
    assert "want of memory" in doubts("node-kill", node={**GOOD["node-kill"], **other})[0]


def test_other_kinds_are_none_of_its_business() -> None:
    assert doubts("kill") == []
