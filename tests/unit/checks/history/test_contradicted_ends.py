"""Launcher and harness record how a process ended: two statuses of one process are no evidence of either."""

from __future__ import annotations

from typing import Any

from chaos.checks.history.ends import EXPECTED
from tests.kit.runs.good_run import GoodRun
from tests.unit.checks.judging import Judge, said, verdicts


def collected(run: GoodRun, **changes: Any) -> None:
    """Let the launcher record the end of rank 1 in the resumed job, as the harness does or with ``changes``."""
    end = run.only("rank.exit", attempt="resume", rank=1)
    of_child = {"child_pid": end["pid"], "child_rank": 1, "signal": end["signal"], "code": end["code"]}
    child = {**end, "event": "child.exit", "rank": None, "pid": 900, "start_time": end.get("start_time"), **of_child}
    run.add("harness", {**child, **changes})


def test_one_end_by_both_passes(run: GoodRun, judged: Judge) -> None:
    collected(run)
    assert judged(run).verdict == "pass"


def test_an_end_without_the_launchers_record_is_judged_by_the_harness_alone(run: GoodRun, judged: Judge) -> None:
    assert not list(run.events("child.exit"))
    assert verdicts(judged(run), "history") == {"pass"}


def test_two_statuses_of_one_process_are_unknown(run: GoodRun, judged: Judge) -> None:
    collected(run, code=1)
    assert said(judged(run), "history", "unknown", f"{EXPECTED} | process 2001 of rank 1: exit code 1 by the launcher")


def test_a_status_that_nobody_knows_contradicts_nothing(run: GoodRun, judged: Judge) -> None:
    collected(run, code=None)
    assert judged(run).verdict == "pass"


def test_another_start_time_under_the_pid_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.only("rank.exit", attempt="resume", rank=1).update(start_time=5)
    run.only("rank.found", attempt="resume", rank=1).update(start_time=5)
    collected(run, start_time=6)
    assert said(judged(run), "history", "unknown", "has another start time by the launcher than by the harness")


def test_an_end_by_a_signal_and_a_code_is_unknown(run: GoodRun, judged: Judge) -> None:
    run.only("rank.exit", attempt="train", rank=1).update(signal=15)
    assert said(judged(run), "history", "unknown", "a process cannot end by both")
