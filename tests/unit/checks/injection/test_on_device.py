"""Faults of a device count with the tool's own words alone, and a card that is left quarantined is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from chaos.checks.hygiene.quarantine import judge_quarantine
from chaos.checks.injection.proof_registry import proof_of
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.proof import Case
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault
from tests.kit.plans import changed
from tests.kit.runs.good_run import a_plan

DEVICE = {"npu": 1, "chip": 0, "logic": 1, "card": 1}
HEALTH = {"before": "Success", "after": "Fault"}


def event(name: str, mono: int = 10, **data: Any) -> Event:
    frame: dict[str, Any] = {"attempt": "train", "rank": 1, "pid": 101}
    writer = "agent" if name == "writer.start" else "harness"
    return Event(event=name, mono=mono, wall=mono, seq=mono, writer=writer, data=data, **frame)


def history(*events: Event) -> History:
    return History(events=events, problems=())


def doubts(kind: str, evidence: dict[str, Any], *events: Event) -> list[str]:
    fault = PlannedFault("down", kind, (1,), {"step": 5}, {}, None, 1)
    landing, act = event("fault.landed", 20), event("x")
    case = Case(a_plan(), history(*events), cast(Artifacts, None), fault, landing, act, {"rank": 1, **evidence})
    return [text for text, _ in proof_of(kind).doubts(case)]


def test_a_link_is_down_when_the_vendors_tool_says_so() -> None:
    assert doubts("npu-link-down", {"device": DEVICE, "net_health": HEALTH}) == []


@pytest.mark.parametrize(
    "evidence",
    [{}, {"device": DEVICE}, {"net_health": HEALTH}, {"device": DEVICE, "net_health": {**HEALTH, "after": "Success"}}],
)
def test_anything_else_proves_no_link(evidence: dict[str, Any]) -> None:
    assert doubts("npu-link-down", evidence)


def test_a_reset_is_proven_by_the_end_of_the_process() -> None:
    shown = {"device": DEVICE, "answer": {"status": "OK", "said": "'Status : OK'"}}
    assert doubts("device-reset", shown, event("rank.exit", 15, signal=None, code=1)) == []
    for exits in ([], [event("rank.exit", 15, signal=None, code=0)], [event("rank.exit", 5, signal=9, code=None)]):
        assert doubts("device-reset", shown, *exits)


@pytest.mark.parametrize("answer", [None, {"status": None, "said": "'Done.'"}, {"status": "Fail", "said": "x"}])
def test_an_end_without_the_tools_word_that_the_chip_was_reset_proves_nothing(answer: dict[str, Any] | None) -> None:
    (doubt,) = doubts("device-reset", {"device": DEVICE, "answer": answer}, event("rank.exit", 15, code=1))
    assert "npu-smi is not known to have reset the chip of rank 1" in doubt


STARTED = event("writer.start", 1, boot="a")
"""The process of rank 1 begins its history in boot a."""


def reboot_doubts(boot: object, *orders: Event, starts: tuple[Event, ...] = (STARTED,)) -> list[str]:
    """Doubts about the reboot of node 3, on which rank 1 is, landed at 20."""
    found, injecting = event("rank.found", 1, node=3), event("fault.injecting", 12, fault="down")
    fault = PlannedFault("down", "node-reboot", (1,), {"step": 5}, {}, None, 1)
    landed = event("fault.landed", 20)
    act, shown = event("fault.injecting", 16), {"rank": 1, "boot": boot}
    recorded = history(found, injecting, *orders, *starts)
    case = Case(a_plan(), recorded, cast(Artifacts, None), fault, landed, act, shown)
    return [text for text, _ in proof_of(fault.kind).doubts(case)]


def test_a_reboot_is_proven_by_its_order_and_another_boot() -> None:
    order = event("host.reboot", 14, node=3)
    assert reboot_doubts({"before": "a", "after": "b"}, order) == []
    for boot in (None, {"before": "a", "after": "a"}, {"before": "a"}):
        assert reboot_doubts(boot, order)


@pytest.mark.parametrize(
    "starts", [(), (replace(STARTED, pid=102),), (replace(STARTED, data={**STARTED.data, "boot": "z"}),)]
)
def test_the_boot_that_ended_is_that_in_which_the_rank_has_recorded(starts: tuple[Event, ...]) -> None:
    order = event("host.reboot", 14, node=3)
    (doubt,) = reboot_doubts({"before": "a", "after": "b"}, order, starts=starts)
    assert doubt == "nothing shows that rank 1 was in the boot a, which is said to have ended"


def test_nobody_begins_in_a_boot_that_has_ended() -> None:
    order, boot = event("host.reboot", 14, node=3), {"before": "a", "after": "b"}
    later = replace(STARTED, mono=30, attempt="resume", pid=201)
    (doubt,) = reboot_doubts(boot, order, starts=(STARTED, later))
    assert doubt == "rank 1 of attempt resume began in the boot a, which is said to have ended"
    assert reboot_doubts(boot, order, starts=(STARTED, replace(later, data={**later.data, "boot": "b"}))) == []
    # The clock of another host is known with an error: it may have begun before the landing.
    assert reboot_doubts(boot, order, starts=(STARTED, replace(later, clock="h/a", error=15))) == []


@pytest.mark.parametrize(
    "orders", [(), (event("host.reboot", 14, node=2),), (event("host.reboot", 11, node=3), event("host.reboot", 21))]
)
def test_a_host_that_boots_again_without_an_order_is_no_fault_of_the_run(orders: tuple[Event, ...]) -> None:
    (doubt,) = reboot_doubts({"before": "a", "after": "b"}, *orders)
    assert doubt == "nothing shows that this run ordered the reboot of the node of rank 1"


def quarantine(kind: str, *events: Event, nodes: int = 1) -> list[tuple[str, str]]:
    plan = changed(a_plan(), nodes=nodes)
    found = Collector("hygiene")
    judge_quarantine(replace(plan, faults=(replace(plan.faults[0], kind=kind),)), history(*events), found)
    return [(finding.verdict, finding.seen) for finding in found.findings()]


def seen(known: bool, before: list[str], after: list[str]) -> Event:
    return event(
        "quarantine",
        node="worker-1",
        known=known,
        before=before,
        after=after,
        how="no kubectl",
        advice="kubectl edit cm",
    )


def test_a_card_that_the_run_leaves_quarantined_is_told_with_what_to_do() -> None:
    ((verdict, text),) = quarantine("npu-link-down", seen(True, ["Ascend910-3"], ["Ascend910-0", "Ascend910-3"]))
    assert verdict == "fail"
    assert "left quarantined: Ascend910-0 on worker-1" in text and "kubectl edit cm" in text


def test_one_that_was_before_is_not_the_runs() -> None:
    assert [one for one, _ in quarantine("npu-link-down", seen(True, ["Ascend910-3"], ["Ascend910-3"]))] == ["pass"]


def test_nobody_who_could_be_asked_is_unknown() -> None:
    assert quarantine("npu-link-down", seen(False, [], []))[0][0] == "unknown"
    assert quarantine("npu-link-down")[0][0] == "unknown"


def test_a_node_that_nobody_looked_at_is_unknown() -> None:
    """Two events of one node are no word about two nodes."""
    fact = seen(True, [], [])
    other = replace(fact, data={**fact.data, "node": "worker-2"})
    assert [verdict for verdict, _ in quarantine("npu-link-down", fact, other, nodes=2)] == ["pass"]
    ((verdict, text),) = quarantine("npu-link-down", fact, fact, nodes=2)
    assert (verdict, text) == ("unknown", "no check was made of some of 2 nodes")


def test_other_faults_quarantine_nothing() -> None:
    assert quarantine("kill") == []
