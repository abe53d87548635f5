"""Who was refused is told, never held against the run; a rank that was refused and trained is doubted."""

from __future__ import annotations

from typing import Any

from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said

EXPECTED = "every listener of the run refuses callers from outside the run"


def refuse(run: GoodRun, *, at_event: str = "fault.landed", **data: Any) -> None:
    """Record a refusal by the harness in the first launch, at the time of an event."""
    (name,) = (name for name in run.files if name.startswith("harness"))
    records = run.files[name]
    at = next(index for index, record in enumerate(records) if record["event"] == at_event)
    refusal = {**records[at], "event": "caller.refused", "attempt": "train", "rank": None, "channel": "agents", **data}
    for key in ("fault", "evidence", "step", "phase", "ranks"):
        refusal.pop(key, None)
    records.insert(at, refusal)
    for index, record in enumerate(records):
        record["seq"] = index


def test_where_nobody_was_refused_the_report_says_so(run: GoodRun, judged: Judge) -> None:
    (finding,) = said(judged(run), "history", "pass", EXPECTED)
    assert finding.seen == "no caller was refused"


def test_a_stranger_is_told_and_harms_nobody(run: GoodRun, judged: Judge) -> None:
    refuse(run, pid=4711, what="a connection is of another run; ignored")
    judgement = judged(run)
    (finding,) = said(judgement, "history", "pass", EXPECTED)
    assert finding.seen == "refused were agents: process 4711: a connection is of another run; ignored"
    assert finding.where[0].startswith("history/harness")
    assert judgement.verdict == "pass"


def test_a_rank_that_trains_though_it_was_refused_is_unknown(run: GoodRun, judged: Judge) -> None:
    refuse(run, pid=run.only("rank.found", attempt="resume", rank=1)["pid"], what="is not rank 1 of this job")
    judgement = judged(run)
    (finding,) = said(judgement, "history", "unknown", "every rank that trains is known to the harness")
    assert "trains as rank 1, and was refused: is not rank 1 of this job" in finding.seen
    assert judgement.verdict == "unknown"


def test_a_rank_that_was_known_already_is_not_doubted_for_a_second_call(run: GoodRun, judged: Judge) -> None:
    found = run.only("rank.found", attempt="train", rank=1)
    refuse(run, at_event="rank.found", pid=found["pid"], what="is rank 1 twice")
    judgement = judged(run)
    (finding,) = said(judgement, "history", "pass", EXPECTED)
    assert "is rank 1 twice" in finding.seen
    assert judgement.verdict == "pass"


def test_a_process_with_the_pid_of_a_rank_that_has_ended_is_doubted(run: GoodRun, judged: Judge) -> None:
    pid = run.only("rank.found", attempt="resume", rank=1)["pid"]
    once = run.only("rank.found", attempt="train", rank=1)
    ended = run.only("rank.exit", attempt="train", rank=1)
    once["pid"] = pid
    ended.update(pid=pid, mono=once["mono"] + 1)
    refuse(run, pid=pid, what="is not rank 1 of this job")
    said(judged(run), "history", "unknown", "every rank that trains is known to the harness")
