"""What is left on a node is a failure, and a node that nobody could ask is unknown, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.runs.good_run import GoodRun, record
from tests.unit.checks.judging import Judge, said

TEXT = "has left nothing on its nodes"


@pytest.fixture
def on_nodes(run: GoodRun) -> GoodRun:
    """The good run on two nodes, asked afterwards."""
    for number in range(2):
        clock = record(0.2, "clock", host=f"h{number}", node=number, boot="b1", error=0, trips=16, offset=0)
        run.add("harness", {**clock, "at": clock["mono"]})
        run.add("harness", record(25.9, "hygiene.node", node=number, orphans=[], mounts=[]))
    run.add("harness", record(26.1, "hygiene.nodes", platform="docker", left=[]))
    return run


def test_nodes_on_which_nothing_is_left_pass(on_nodes: GoodRun, judged: Judge) -> None:
    judgement = judged(on_nodes)
    assert [finding for finding in judgement.findings if finding.verdict != "pass"] == []
    assert said(judgement, "hygiene", "pass", "2 nodes were asked")


def test_a_node_that_has_gone_has_nothing(on_nodes: GoodRun, judged: Judge) -> None:
    look = on_nodes.only("hygiene.node", node=1)
    look.update(gone=True)
    del look["orphans"], look["mounts"]
    assert said(judged(on_nodes), "hygiene", "pass", "2 nodes were asked")


@pytest.mark.parametrize(
    ("event", "what", "verdict", "text"),
    [
        ("hygiene.node", {"orphans": ["77 (sleep 1000)"]}, "fail", "processes left on node 1: 77 (sleep 1000)"),
        ("hygiene.node", {"mounts": ["/run/x"]}, "fail", "mounts left on node 1: /run/x"),
        ("hygiene.node", {"rules": ["a limit"]}, "fail", "rules of the network left on node 1: a limit"),
        ("hygiene.node", {"rules": None}, "unknown", "on node 1 rules of the network were not looked for"),
        ("hygiene.node", {"mounts": None}, "unknown", "on node 1 mounts were not looked for"),
        (
            "hygiene.node",
            {"unasked": "its remote helper was lost"},
            "unknown",
            "node 1 could not be asked: its remote helper was lost",
        ),
        ("hygiene.nodes", {"left": ["network chaos-x"]}, "fail", "the platform docker still has network chaos-x"),
        ("hygiene.nodes", {"unasked": "no engine"}, "unknown", "docker could not be asked: no engine"),
        ("hygiene.nodes", {"left": None}, "unknown", "did not report what it still has"),
    ],
)
def test_what_is_left_and_what_is_not_known(
    on_nodes: GoodRun, judged: Judge, event: str, what: dict[str, Any], verdict: str, text: str
) -> None:
    place = {"node": 1} if event == "hygiene.node" else {}
    on_nodes.only(event, **place).update(what)
    assert said(judged(on_nodes), "hygiene", verdict, text)


@pytest.mark.parametrize(
    ("event", "place", "text"),
    [
        ("hygiene.node", {"node": 1}, "no check was made on node 1"),
        ("hygiene.nodes", {}, "no check was made after the nodes were removed"),
    ],
)
def test_without_a_look_it_is_unknown(
    on_nodes: GoodRun, judged: Judge, event: str, place: dict[str, Any], text: str
) -> None:
    on_nodes.drop(event, **place)
    assert said(judged(on_nodes), "hygiene", "unknown", text)
