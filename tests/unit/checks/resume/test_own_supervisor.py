"""Ranks that the job's own supervisor starts again are judged as the resume; a supervisor that starts none fails."""

from __future__ import annotations

from tests.kit.runs.good_run import RANKS, GoodRun, pid_of, record
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.judging import Judge, not_passed, said

TWICE = "no rank is started again within a launch"


def supervised() -> GoodRun:
    """The launch of the supervisor, whose agent has recorded the ends of all processes under its own attempt."""
    run = restored_run()
    run.only("attempt.start", attempt="resume")["by"] = "the job's own supervisor"
    for rank in range(RANKS):
        found = run.only("rank.found", attempt="resume", rank=rank)
        ended = {"child_pid": found["pid"], "child_rank": rank, "start_time": found["start_time"]}
        run.add("harness", record(40.0, "child.exit", "train", signal=None, code=0, **ended))
    return run


def test_ends_of_the_next_processes_are_no_second_start(judged: Judge) -> None:
    assert not_passed(judged(supervised())) == []


def test_without_a_supervisor_they_are(judged: Judge) -> None:
    run = supervised()
    del run.only("attempt.start", attempt="resume")["by"]
    assert said(judged(run), "mechanism", "fail", TWICE)


def test_a_process_that_nobody_has_identified_is_one_start_too_many(judged: Judge) -> None:
    run = supervised()
    ended = {"child_pid": 7777, "child_rank": 1, "start_time": 9}
    run.add("harness", record(39.0, "child.exit", "train", signal=None, code=1, **ended))
    assert said(
        judged(run),
        "mechanism",
        "fail",
        f"rank 1 was started again in attempt train: processes {pid_of('train', 1)}, 7777",
    )


def test_a_supervisor_that_has_started_no_rank_fails(judged: Judge) -> None:
    run = supervised()
    reason = "the launcher ended (exit code 1), and ranks 0-3 never joined"
    run.add("harness", record(30.0, "supervisor.ended", "resume", reason=reason))
    assert said(judged(run), "resume", "fail", f"the job's own supervisor starts the ranks again | {reason}")
