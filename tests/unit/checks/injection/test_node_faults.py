"""A fault of a node is proved by what the platform says of that node, and by nothing less."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from chaos.checks.injection.proof_registry import proof_of
from chaos.evidence.injection.on_node import early_doubts, ended_at
from chaos.faults.nodes.kinds import FAMILY
from chaos.faults.nodes.proof import node_doubts
from chaos.history.event import Event
from chaos.plan.job_effect import DEATH
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import GoodRun, good_run
from tests.unit.checks.judging import Judge, said

LANDING = Event("fault.landed", 1, 1, "harness", 1, "train", None, None, {}, "history/harness.jsonl:7")
GOOD: dict[str, dict[str, Any]] = {
    "node-kill": {"status": "exited", "connected": True, "exit_code": 137, "oom_killed": False},
    "node-stop": {"status": "exited", "exit_code": 137, "oom_killed": False, "finished": "2026-11-22T08:00:00.5Z"},
    "node-restart": {"status": "running", "connected": True, "restarted": True},
    "node-oom": {"status": "running", "connected": True, "oom_events": 2, "oom_kills": 2},
    "node-pause": {"status": "paused", "connected": True},
    "node-disconnect": {"status": "running", "connected": False},
}


def doubts(kind: str, **evidence: Any) -> list[str]:
    fault = PlannedFault("node", kind, (2, 3), {}, {}, None, 1, DEATH)
    return [text for text, _ in node_doubts(fault, LANDING, {"rank": 2, **evidence})]


@pytest.mark.parametrize("kind", [kind for kind in FAMILY.kinds if proof_of(kind).fields == ("node",)])
def test_only_the_platforms_word_proves_it(kind: str) -> None:
    assert doubts(kind, node=GOOD[kind]) == []
    for other, shown in GOOD.items():
        if other != kind and (kind, other) != ("node-kill", "node-stop"):
            assert len(doubts(kind, node=shown)) == 1
    nothings: list[dict[str, Any]] = [{}, {"node": None}, {"node": "exited"}, {"node": {}}]
    for nothing in nothings:
        assert "is not shown to be" in doubts(kind, **nothing)[0]


@pytest.mark.parametrize("other", [{"oom_killed": True}, {"exit_code": 0}, {"exit_code": None}, {"oom_killed": None}])
def test_an_end_for_want_of_memory_or_by_itself_is_no_kill(other: dict[str, Any]) -> None:
    assert "want of memory" in doubts("node-kill", node={**GOOD["node-kill"], **other})[0]


def test_other_kinds_are_none_of_its_business() -> None:
    assert doubts("kill") == []


@pytest.mark.parametrize("wanting", [{"oom_events": 0}, {"oom_kills": 0}, {"oom_events": None}])
def test_want_of_memory_is_shown_by_the_engine_and_by_the_kernel(wanting: dict[str, Any]) -> None:
    assert len(doubts("node-oom", node={**GOOD["node-oom"], **wanting})) == 1


def test_the_kernel_has_ended_every_rank_of_a_node_without_memory() -> None:
    (doubt,) = doubts("node-oom", node={**GOOD["node-oom"], "oom_kills": 1})
    assert doubt == "the kernel has ended 1 process of the node for want of memory, and the fault was to take 2 ranks"


def landing(*nodes: Any) -> Event:
    evidence = [{"rank": number, "node": node} for number, node in enumerate(nodes)]
    return Event("fault.landed", 9_000_000_000, 1_000_000_000_700_000_000, "harness", 1, data={"evidence": evidence})


def test_the_end_of_a_stopped_node_is_placed_on_the_clock_of_the_history() -> None:
    fields = {"finished": "2001-09-09T01:46:40.5Z"}
    assert ended_at(landing(fields, fields)) == 8_800_000_000
    assert ended_at(landing({"finished": "2001-09-09T01:46:40.123456789Z"})) == 8_423_456_789
    assert ended_at(landing({"finished": "2001-09-09T01:46:40Z"})) == 8_300_000_000


@pytest.mark.parametrize("nothing", [{}, {"finished": None}, {"finished": "yesterday"}, {"finished": "T1Z"}])
def test_without_the_platforms_word_the_end_of_a_stopped_node_is_not_known(nothing: dict[str, Any]) -> None:
    assert ended_at(landing(nothing)) is None
    assert ended_at(landing({"finished": "2001-09-09T01:46:40.5Z"}, nothing)) is None
    assert ended_at(landing()) is None


def stopped(run: GoodRun, seconds_after_act: float, grace: float = 0) -> GoodRun:
    """The good run, with its fault made by stopping the node, which ended so long after the act."""
    run.replan(faults=(replace(run.plan.faults[0], kind="node-stop", parameters={"grace": grace}),))
    (act,), (landed,) = run.events("fault.injecting"), run.events("fault.landed")
    act["kind"] = landed["kind"] = "node-stop"
    ended = landed["wall"] - (landed["mono"] - act["mono"]) + int(seconds_after_act * 1e9)
    whole = datetime.fromtimestamp(ended // 10**9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    landed["evidence"][0]["node"] = {**GOOD["node-stop"], "finished": f"{whole}.{ended % 10**9:09d}Z"}
    return run


def test_a_recovery_is_measured_from_the_end_of_the_node_and_not_from_the_order_to_stop(judged: Judge) -> None:
    total = judged(good_run()).recovery.total
    later = judged(stopped(good_run(), 0.04))
    assert total is not None
    assert later.recovery.total == total - 40_000_000
    assert later.recovery.phases[0].name == "detection"
    assert said(later, "injection", "pass", "the node has ended, and when")
    assert [finding for finding in later.findings if finding.verdict != "pass"] == []


def test_a_node_that_ends_before_its_grace_is_over_was_ended_by_something_else(judged: Judge) -> None:
    judgement = judged(stopped(good_run(), 0.04, grace=10))
    assert said(judgement, "injection", "unknown", "after the order to stop, and had 10 s: something else ended it")


@pytest.mark.parametrize(
    ("ends", "early"),
    [({2: 2.0, 3: 2.0}, []), ({2: 1.9, 3: 1.9}, [1.9]), ({2: 2.0, 3: 2.9}, [0.8]), ({2: 0.1, 3: 4.1}, [0.1])],
    ids=["one node, in time", "one node, too early", "two nodes, the second too early", "two nodes, the first"],
)
def test_one_order_stops_all_ranks_of_a_node(ends: dict[int, float], early: list[float]) -> None:
    """That it is given to the second rank is recorded when the first has been shown to have ended, after 2.1 s."""
    fault = PlannedFault("node", "node-stop", (2, 3), {}, {"grace": 2}, None, 1, DEATH)
    orders = [
        Event("fault.injecting", round(at * 1e9), 0, "harness", 1, "train", rank, 0, {}, f"of {rank}")
        for rank, at in ((2, 0.0), (3, 2.1))
    ]
    landed = Event("fault.landed", 5_000_000_000, 1_000_000_005_000_000_000, "harness", 1)
    names = {2: "one", 3: "one" if ends[2] == ends[3] else "other"}
    evidence = [
        {"rank": rank, "node": {"container": names[rank], "finished": f"2001-09-09T01:46:{40 + end}00Z"}}
        for rank, end in ends.items()
    ]
    said = [text for text, _ in early_doubts(fault, landed, evidence, orders)]
    assert said == [
        f"the node ended {took:.3f} s after the order to stop, and had 2 s: something else ended it" for took in early
    ]


@pytest.mark.parametrize("seconds", [-0.01, 1.0])
def test_an_end_before_the_order_or_after_it_was_seen_is_no_time_to_count_from(judged: Judge, seconds: float) -> None:
    judgement = judged(stopped(good_run(), seconds))
    assert judgement.recovery.total is None
    assert said(judgement, "recovery", "unknown", "the end of the node stopped by fault")


def test_without_the_platforms_word_a_stopped_node_proves_nothing_and_times_are_unknown(judged: Judge) -> None:
    run = stopped(good_run(), 0.04)
    (landed,) = run.events("fault.landed")
    del landed["evidence"][0]["node"]["finished"]
    judgement = judged(run)
    assert said(judgement, "injection", "unknown", "is not shown to be ended by SIGKILL")
    assert said(judgement, "recovery", "unknown", "the end of the node stopped by fault")
