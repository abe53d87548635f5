"""After a resume the SDK's controller must know every rank again, or the next fault is not survived."""

from __future__ import annotations

import pytest

from chaos.evidence.finding import Finding
from chaos.mechanisms.heartbeat import EXPECTED
from tests.kit.runs.good_run import RANKS, GoodRun, good_run
from tests.unit.checks.judging import Judge

LOG = "logs/{}/ttp/ttp_log.log.99"


def registered(run: GoodRun, attempt: str, *ranks: int) -> None:
    """The SDK's log of an attempt tells that these ranks have registered."""
    lines = (
        f"2026-01-01 00:00:00.00000{rank} 99 info [99][TTP processor.cpp:1595] rank:{rank} register to: "
        "127.0.0.1:20000 success, after 0 times\n"
        for rank in ranks
    )
    run.others[LOG.format(attempt)] = "".join(lines).encode()


def findings(judged: Judge, run: GoodRun) -> list[Finding]:
    return [finding for finding in judged(run).findings if (finding.check, finding.expected) == ("mechanism", EXPECTED)]


@pytest.mark.parametrize(
    ("again", "verdict", "seen"),
    [
        (tuple(range(RANKS)), "pass", "4 ranks have, by lines of a log alone"),
        ((0, 1, 3), "fail", "rank 2 did not"),
        ((), "unknown", "there is no log of the SDK of attempt resume, so protection is not shown"),
    ],
)
def test_ranks_that_registered_before_do_so_again(
    judged: Judge, again: tuple[int, ...], verdict: str, seen: str
) -> None:
    run = good_run()
    registered(run, "train", *range(RANKS))
    if again:
        registered(run, "resume", *again)
    assert [(finding.verdict, finding.seen) for finding in findings(judged, run)] == [(verdict, seen)]


def test_with_the_record_of_a_rank_the_lines_are_not_alone(judged: Judge) -> None:
    run = good_run()
    for attempt in ("train", "resume"):
        registered(run, attempt, *range(RANKS))
    run.add("resume-rank_0", {**run.only("train.begin", attempt="resume", rank=0), "event": "sdk.connected"})
    assert [(finding.seen, finding.by_log) for finding in findings(judged, run)] == [("4 ranks have", False)]


def test_where_the_log_tells_of_no_registration_nothing_is_said(judged: Judge) -> None:
    assert findings(judged, good_run()) == []
