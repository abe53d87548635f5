"""Every set of MindCluster's five strategies by plan, against a table written apart from the code under test."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

FIVE = ("retry", "recover-in-place", "recover", "dump", "exit")
SETS = [subset for size in range(1, 6) for subset in combinations(FIVE, size)]
EFFECT = {"kill": "ARF", "uce": "UCE", "hcce": "HCCE"}


def by_hand(strategies: tuple[str, ...], kind: str) -> str:
    """retry, then a restart, then dump, then exit; only what is allowed, and a dead process cannot be retried."""
    if "retry" in strategies and kind != "kill":
        return {"uce": "UCE", "hcce": "HCCE"}[kind]
    if {"recover", "recover-in-place"} & set(strategies):
        return "ARF"
    return "TTP" if "dump" in strategies else "none"


def fault(kind: str, **target: Any) -> dict[str, Any]:
    return {"kind": kind, "target": target or {"rank": 2}, "trigger": {"step": 5, "phase": "forward"}}


@pytest.mark.parametrize("kind", ["kill", "uce", "hcce"])
@pytest.mark.parametrize("strategies", SETS)
def test_the_mechanism_follows_from_the_strategies(plan: Planner, strategies: tuple[str, ...], kind: str) -> None:
    found = plan(fault(kind), job={"agent": True, "strategies": strategies, "protection": ()})
    assert found.response.mechanism == by_hand(strategies, kind)
    assert found.fault_tolerance.strategies == strategies


@pytest.mark.parametrize(
    ("strategies", "hit", "restarted"),
    [
        (("recover",), {"rank": 2}, (2, 3)),
        (("recover-in-place",), {"rank": 2}, (2,)),
        (("recover-in-place", "recover"), {"rank": 2}, (2,)),
        (("recover",), {"ranks": (1, 4)}, (0, 1, 4, 5)),
        (("recover-in-place", "recover"), {"ranks": (1, 4)}, (0, 1, 4, 5)),
    ],
)
def test_recover_takes_whole_nodes_and_in_place_only_lost_ranks(
    plan: Planner, strategies: tuple[str, ...], hit: dict[str, Any], restarted: tuple[int, ...]
) -> None:
    found = plan(
        fault("kill", **hit),
        cluster={"ranks": 6, "nodes": 3},
        job={"agent": True, "strategies": strategies, "protection": ()},
    )
    assert sorted(found.response.recoveries[0].restarted) == list(restarted)


def test_in_place_only_one_node_can_be_repaired(plan: Planner) -> None:
    found = plan(
        fault("kill", ranks=(1, 4)),
        cluster={"ranks": 6, "nodes": 3},
        job={"agent": True, "strategies": ("recover-in-place", "dump"), "protection": ()},
    )
    assert found.response.mechanism == "TTP"


def test_without_dump_nothing_is_saved_though_ttp_is_on(plan: Planner) -> None:
    found = plan(fault("kill"), job={"agent": True, "strategies": ("exit",), "protection": ()})
    assert (found.response.mechanism, found.checkpoint) == ("none", None)
    assert any("dump is not among job.strategies (exit)" in why for why in found.explanation.reasons)


def test_elastic_training_is_refused_by_name(plan: Planner) -> None:
    text = plan.refused(
        fault("kill"), job={"agent": True, "strategies": ("elastic-training", "dump"), "protection": ()}
    )
    assert "elastic-training" in text
    assert "PyTorch" in text
