"""A result begins with its reason: what broke first, then what follows from it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from chaos.evidence.finding import Finding
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.report.analyze import analyze
from chaos.report.reason import broken_in_order, reason_of
from chaos.report.result import Result
from chaos.report.terminal import print_result
from tests.kit.runs.good_run import GoodRun, good_run

EARLY, LATE = "history/rank_1.jsonl:3", "history/harness.jsonl:9"
HISTORY = History(
    tuple(Event("rank.exit", mono, mono, "harness", mono, source=source) for mono, source in ((1, EARLY), (2, LATE)))
)


def finding(check: str, *where: str, verdict: str = "fail") -> Finding:
    return Finding(check, verdict, f"{check} is right", f"{check} is wrong", where)  # type: ignore[arg-type]


def test_what_broke_first_is_the_reason_whatever_is_judged_first() -> None:
    findings = [finding("mechanism", LATE), finding("checkpoint"), finding("hygiene", EARLY, LATE)]
    broken = broken_in_order("fail", findings, HISTORY)
    assert [one.check for one in broken] == ["hygiene", "mechanism", "checkpoint"]
    assert (
        reason_of("fail", broken, HISTORY)
        == "hygiene: hygiene is wrong (expected: hygiene is right); then mechanism, checkpoint"
    )


def test_what_is_not_known_follows_from_a_run_that_came_to_no_good_end() -> None:
    findings = [finding("loss", EARLY, verdict="unknown"), finding("run", LATE, verdict="unknown"), finding("x")]
    assert [one.check for one in broken_in_order("unknown", findings, HISTORY)] == ["run", "loss"]


def test_a_pass_needs_no_reason(tmp_path: Path) -> None:
    result = analyze(good_run().write(tmp_path))
    assert (result.verdict, result.reason) == ("pass", "")
    assert {check.order for check in result.checks} == {None}


@pytest.fixture
def failed(tmp_path: Path) -> tuple[Result, Path]:
    run = good_run()
    run.only("rank.exit", attempt="resume", rank=3)["code"] = 1
    del run.saved[1]
    return analyze(run.write(tmp_path)), tmp_path


def test_every_report_begins_with_it(failed: tuple[Result, Path]) -> None:
    result, directory = failed
    assert result.reason.startswith("hygiene: ") and "; then checkpoint" in result.reason
    assert json.loads((directory / "result.json").read_text("utf-8"))["reason"] == result.reason
    assert result.reason.split("; then")[0] in (directory / "junit.xml").read_text("utf-8").replace("&#x27;", "'")
    out = io.StringIO()
    print_result(result, Console(file=out, width=100))
    shown = out.getvalue()
    assert shown.splitlines()[0] == f"kill-rank: fail: {result.reason}"
    assert shown.index("\nhygiene: fail") < shown.index("\nthen checkpoint: fail")


def interrupted(run: GoodRun, directory: Path) -> str:
    run.only("run.end")["interrupted"] = True
    return analyze(run.write(directory)).reason


def test_an_interrupted_run_says_what_became_of_it(tmp_path: Path) -> None:
    assert interrupted(good_run(), tmp_path) == "interrupted; job ended; faults undone; nothing left"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ({"orphans": [{"pid": 7, "cmdline": ["python"]}]}, "processes of the job are left: chaos heal; faults undone;"),
        ({"private_left": True}, "job ended; faults undone; something is left"),
        ({"unsearched": ["job: too deep"]}, "job ended; faults undone; something is left, or was not searched for"),
    ],
)
def test_no_part_is_said_that_is_not_true(tmp_path: Path, left: dict[str, object], said: str) -> None:
    run = good_run()
    run.only("hygiene").update(left)
    assert said in interrupted(run, tmp_path)


def test_without_evidence_nothing_is_said_to_have_ended(tmp_path: Path) -> None:
    run = good_run()
    run.drop("hygiene")
    assert interrupted(run, tmp_path) == "interrupted; leftovers were not searched for: chaos heal"


def test_an_interrupted_fault_free_run_is_told_of_as_what_it_was() -> None:
    event = Event("baseline.interrupted", 1, 1, "harness", 1, data={"run": "b", "became": "job ended; nothing left"})
    end = Event("run.end", 2, 2, "harness", 2, data={"interrupted": True})
    reason = reason_of("unknown", [], History((event, end)))
    assert reason == "interrupted in the fault-free run; job ended; nothing left"
    assert "no job was started" in reason_of("unknown", [], History((end,)))


def test_a_fault_that_could_not_be_undone_is_named() -> None:
    failed = Event("undo.failed", 1, 1, "harness", 1, data={"why": "the mount is busy"})
    end = Event("run.end", 2, 2, "harness", 2, data={"interrupted": True})
    message = reason_of("unknown", [], History((failed, end)))
    assert (
        "not everything could be undone (the mount is busy): chaos heal" in message and "no job was started" in message
    )
