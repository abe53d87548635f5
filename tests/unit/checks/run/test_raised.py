"""A statement about a rank that an exception has ended shows the calls that raised it, and its line in the log."""

from __future__ import annotations

import pytest

from chaos.report.causes import kind_of
from tests.kit.runs.good_run import GoodRun, pid_of, record
from tests.unit.checks.judging import Judge, resumed_job_dies, said
from tests.unit.observe.logs.test_traceback_calls import FIRST, HEAD

CALLS = "; raised in jobs/train.py:41 in step < jobs/train.py:60 in <module>"
LOG = "logs/resume/worker_1.log"


def logged(run: GoodRun, text: str = HEAD + FIRST) -> None:
    run.others[LOG] = text.encode()


def test_a_resumed_job_that_dies_shows_the_calls_and_the_line_of_the_log_first(run: GoodRun, judged: Judge) -> None:
    resumed_job_dies(26.0)(run)
    logged(run)
    (finding,) = said(judged(run), "run", "fail", "the resumed job runs | rank 1 ended with exit code 1")
    assert finding.seen.endswith(CALLS)
    assert finding.where[0] == f"{LOG}:8"


def test_an_exit_that_is_not_planned_names_the_exception(run: GoodRun, judged: Judge) -> None:
    run.only("rank.exit", attempt="resume", rank=1).update(code=1)
    logged(run)
    (finding,) = said(judged(run), "hygiene", "fail", "| exit code 1 by ValueError: bad weights")
    assert finding.seen.endswith(CALLS)
    assert finding.where[0] == f"{LOG}:8"


def test_without_a_traceback_the_record_alone_is_shown(run: GoodRun, judged: Judge) -> None:
    run.only("rank.exit", attempt="resume", rank=1).update(code=1)
    logged(run, HEAD)
    (finding,) = said(judged(run), "hygiene", "fail", "| exit code 1")
    assert finding.seen == "exit code 1"
    assert finding.where[0].startswith("history/harness.jsonl:")


@pytest.mark.parametrize(("error", "shown"), [("ValueError: bad weights", True), ("KeyError: 'x'", False)])
def test_the_traceback_of_another_exception_is_not_shown(run: GoodRun, judged: Judge, error: str, shown: bool) -> None:
    event = record(9.0, "error.uncaught", "train", 1, pid_of("train", 1), error=error, base=error.partition(":")[0])
    run.add("train-rank_1", event)
    run.others["logs/train/worker_1.log"] = (HEAD + FIRST).encode()
    (finding,) = said(judged(run), "mechanism", "fail", f"rank 1 ended by {error}")
    assert finding.seen.endswith(CALLS) is shown
    assert (finding.where[0] == "logs/train/worker_1.log:8") is shown


def test_the_calls_are_no_part_of_the_id_of_a_failure() -> None:
    assert kind_of(f"rank 1 ended by ValueError: bad{CALLS}") == kind_of("rank 1 ended by ValueError: bad")
