"""A recovery that the SDK's own log calls failed is none, whatever else was seen of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.checks.mechanism.reported_failures import EXPECTED, failures
from chaos.observe.logs.log_event import LogEvent
from tests.kit.runs.good_run import good_run
from tests.unit.checks.judging import Judge, not_passed, said


def event(kind: str, /, file: str = "ttp_log.log.1", **fields: object) -> LogEvent:
    return LogEvent(kind, fields=fields, file=file, line=1)


REPAIR = event("ttp.state", state="REPAIR")
NORMAL = event("ttp.state", state="NORMAL")
ASSERTION = event("ttp.assertion", condition_text="ret == TTP_OK")


def test_a_good_save_has_no_failure_in_the_log(judged: Judge) -> None:
    judgement = judged(good_run())
    assert not_passed(judgement) == []
    assert said(judgement, "mechanism", "pass", f"{EXPECTED} | none in 6 of its lines")


def test_without_a_log_nothing_is_said(judged: Judge) -> None:
    run = good_run()
    run.log = []
    assert not [finding for finding in judged(run).findings if finding.expected == EXPECTED]


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("DumpCallback: save ckpt failed, ret: 1", "its controller says: save ckpt failed"),
        (
            "ProcessInner failed after reply error retry. opCode: ACTION_OP_SAVECKPT, sn: 3, not reply ranks: [1, 0]",
            "ranks [1, 0] have not answered to SAVECKPT",
        ),
        ("Mindx Cluster notify to do dump, try to do dump...", "the cluster has ordered the save"),
    ],
)
def test_a_save_that_the_log_calls_failed_is_none(judged: Judge, line: str, seen: str) -> None:
    run = good_run()
    run.log.insert(3, (11.3, line))
    assert said(judged(run), "mechanism", "fail", f"{EXPECTED} | {seen}")


def test_a_save_that_is_planned_to_fail_may_say_so(judged: Judge) -> None:
    run = good_run()
    run.log.insert(3, (11.3, "DumpCallback: save ckpt failed, ret: 1"))
    run.replan(recoveries=tuple(replace(recovery, succeeds=False) for recovery in run.plan.response.recoveries))
    assert not said(judged(run), "mechanism", "fail", EXPECTED)


@pytest.mark.parametrize(
    ("logged", "mechanism", "count"),
    [
        ([REPAIR, ASSERTION], "UCE", 1),
        ([REPAIR, NORMAL, ASSERTION], "UCE", 0),  # the end of a job may break one off
        ([replace(REPAIR, file="ttp_log.log.2"), ASSERTION], "UCE", 0),
        ([REPAIR, ASSERTION], "TTP", 0),
        ([event("ttp.unanswered", operation="ROLLBACK", ranks=[1])], "ARF", 1),
        ([event("ttp.unanswered", operation="COLLECTION", ranks=[1])], "ARF", 0),  # of whom is lost no answer comes
        ([event("ttp.unanswered", operation="PAUSE", ranks=[1])], "TSP", 1),
        ([event("ttp.pause_failed", what_text="do pause wait failed")], "TSP", 1),
        ([event("ttp.pause_failed", what_text="do pause wait failed")], "UCE", 0),
        ([event("ttp.cluster_order", order="dump", why_text="controller do arf repair failed")], "TTP", 0),
    ],
)
def test_each_line_speaks_against_its_own_mechanism(logged: list[LogEvent], mechanism: str, count: int) -> None:
    assert len(list(failures(logged, {mechanism}))) == count
