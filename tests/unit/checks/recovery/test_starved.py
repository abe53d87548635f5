"""What takes too long while the machine keeps the job waiting for a processor is unknown; everything else stays a fail.

The relaunch of the good run lasts from 11.83 s to 20 s, and the whole recovery from 10.5 s on.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kit.runs.good_run import MONO, GoodRun, Record, record
from tests.unit.checks.judging import Judge, said

WHO = "rank 3 (process 1003)"


def waited(run: GoodRun, since: float, until: float, share: float, process: str = WHO) -> None:
    """Looks of half a second from ``since`` to ``until``; at each somebody had waited for ``share`` of it."""
    at = since
    while at < until:
        begin, at = at, at + 0.5
        span = {"since": MONO + round(begin * 1e9), "until": MONO + round(at * 1e9)}
        run.add("harness", record(at, "job.starved", "resume", **span, seconds=0.5 * share, process=process))


def budget(run: GoodRun, name: str, seconds: float) -> None:
    if name == "total":
        run.replan(budget=replace(run.plan.response.budget, total=seconds))
    else:
        run.replan(budget=replace(run.plan.response.budget, phases={**run.plan.response.budget.phases, name: seconds}))


def expired(run: GoodRun, name: str, at: float, attempt: str) -> None:
    run.add("harness", record(at, "deadline.expired", attempt, name=name, seconds=8, detail="rank 1 is at step 5"))


@pytest.mark.parametrize(("phase", "seconds"), [("relaunch", 6.0), ("total", 9.5)])
def test_a_budget_missed_while_the_job_waited_is_unknown_and_says_who_waited(
    run: GoodRun, judged: Judge, phase: str, seconds: float
) -> None:
    budget(run, phase, seconds)
    waited(run, 12.0, 19.0, 0.6)
    waited(run, 19.0, 19.5, 0.9, "the harness (process 7)")
    (finding,) = said(judged(run), "recovery", "unknown", f"{phase} ≤ {seconds:g} s")
    assert "other work on the machine kept the job waiting for a processor for 4.650 s of" in finding.seen
    assert finding.seen.endswith(f"most of it {WHO}") and any("harness.jsonl" in where for where in finding.where)


def starved(run: GoodRun, since: float, until: float, seconds: float | None) -> None:
    """The harness came late to look at its clock, since it had no processor for ``seconds``."""
    span = {"since": MONO + round(since * 1e9), "until": MONO + round(until * 1e9)}
    run.add("harness", record(until, "harness.starved", "resume", **span, seconds=seconds, ran=0.1))


def test_waiting_explains_a_miss_that_is_no_longer_than_it(run: GoodRun, judged: Judge) -> None:
    budget(run, "relaunch", 8.0)  # missed by 0.17 s
    waited(run, 12.0, 13.0, 0.2)
    assert said(judged(run), "recovery", "unknown", "relaunch ≤ 8 s")


def test_waiting_explains_no_miss_that_is_longer(run: GoodRun, judged: Judge) -> None:
    budget(run, "relaunch", 8.0)
    waited(run, 12.0, 13.0, 0.16)
    assert said(judged(run), "recovery", "fail", "relaunch ≤ 8 s | 8.170 s")


def test_a_harness_that_had_no_processor_makes_no_good_run_unknown(run: GoodRun, judged: Judge) -> None:
    starved(run, 13.0, 16.2, 3.1)
    judgement = judged(run)
    assert judgement.verdict == "pass"
    assert said(judgement, "run", "pass", "the machine gave it no processor for 3.100 s in all")


def test_what_the_harness_waited_explains_a_budget_as_well(run: GoodRun, judged: Judge) -> None:
    budget(run, "relaunch", 6.0)  # missed by 2.17 s
    starved(run, 13.0, 16.2, 3.1)
    (finding,) = said(judged(run), "recovery", "unknown", "relaunch ≤ 6 s")
    assert "for 3.100 s of" in finding.seen and finding.seen.endswith("most of it the harness")


def test_what_harness_and_ranks_waited_at_the_same_time_counts_once(run: GoodRun, judged: Judge) -> None:
    budget(run, "relaunch", 4.0)  # missed by 4.17 s
    starved(run, 13.0, 16.2, 3.1)
    waited(run, 13.0, 16.0, 0.8)
    assert said(judged(run), "recovery", "fail", "relaunch ≤ 4 s")


@pytest.mark.parametrize("seconds", [10.0, None])
def test_a_harness_that_was_away_for_too_long_leaves_the_run_unknown(
    run: GoodRun, judged: Judge, seconds: float | None
) -> None:
    starved(run, 9.0, 19.5, seconds)
    assert said(judged(run), "run", "unknown", "processes that wait for the harness may have given up meanwhile")


def test_it_is_a_failure_where_it_is_too_long_even_without_the_waiting(run: GoodRun, judged: Judge) -> None:
    budget(run, "relaunch", 3.0)
    waited(run, 12.0, 20.0, 0.6)
    assert said(judged(run), "recovery", "fail", "relaunch ≤ 3 s | 8.170 s")


def test_waiting_at_another_time_excuses_nothing(run: GoodRun, judged: Judge) -> None:
    budget(run, "relaunch", 6.0)
    waited(run, 2.0, 11.5, 0.9)
    waited(run, 20.0, 29.0, 0.9)
    assert said(judged(run), "recovery", "fail", "relaunch ≤ 6 s | 8.170 s")


@pytest.mark.parametrize("kind", ["cpu-load", "cpu-quota", "node-cpu-quota"])
def test_waiting_that_a_fault_of_the_plan_makes_excuses_nothing(run: GoodRun, judged: Judge, kind: str) -> None:
    budget(run, "relaunch", 6.0)
    waited(run, 12.0, 20.0, 0.9)
    (kill,) = run.plan.faults
    run.replan(faults=(kill, replace(kill, id="load", kind=kind)))
    assert not said(judged(run), "recovery", "unknown", "but other work")


@pytest.mark.parametrize("spoilt", [{"seconds": None}, {"seconds": "5"}, {"since": None}, {"until": 1.5}])
def test_a_record_without_its_figures_excuses_nothing(run: GoodRun, judged: Judge, spoilt: dict[str, object]) -> None:
    budget(run, "relaunch", 6.0)
    waited(run, 12.0, 20.0, 0.9)
    for event in run.events("job.starved"):
        event.update(spoilt)
    assert said(judged(run), "recovery", "fail", "relaunch ≤ 6 s | 8.170 s")


def test_a_recovery_that_keeps_to_its_budget_passes_however_long_it_waited(run: GoodRun, judged: Judge) -> None:
    waited(run, 2.0, 25.0, 0.9)
    assert judged(run).verdict == "pass"


def test_a_deadline_that_runs_out_while_the_job_waited_for_most_of_it_is_unknown(run: GoodRun, judged: Judge) -> None:
    expired(run, "end", 20.0, "train")
    waited(run, 12.0, 20.0, 0.5)
    (finding,) = said(judged(run), "run", "unknown", "deadline end (8 s) is kept")
    assert "rank 1 is at step 5, but other work on the machine kept the job waiting" in finding.seen


@pytest.mark.parametrize(("name", "attempt"), [("end", "train"), ("end", "resume"), ("start", "resume")])
def test_a_deadline_that_left_the_job_most_of_its_time_is_a_failure(
    run: GoodRun, judged: Judge, name: str, attempt: str
) -> None:
    expired(run, name, 20.0, attempt)
    waited(run, 12.0, 20.0, 0.49)
    assert said(judged(run), "run", "fail", f"deadline {name} (8 s) is kept")


def test_a_process_without_a_processor_between_its_two_clocks_is_no_jump(run: GoodRun, judged: Judge) -> None:
    """It has read one clock, and the other when it went on; the events before and after it know better."""
    for number in (9, 30):
        _by_time(run)[number]["wall"] += 80_000_000
    assert not said(judged(run), "recovery", "unknown", "detection")


@pytest.mark.parametrize("since", [4, 20, -1], ids=["in the beginning", "in the middle", "at the end"])
def test_a_wall_clock_that_stays_where_it_has_jumped_is_unknown(run: GoodRun, judged: Judge, since: int) -> None:
    for event in _by_time(run)[since:]:
        event["wall"] += 80_000_000
    (finding,) = said(judged(run), "recovery", "unknown", "detection")
    assert "the wall clock jumped by 0.080 s during the run" in finding.seen


def _by_time(run: GoodRun) -> list[Record]:
    return sorted((event for records in run.files.values() for event in records), key=lambda event: int(event["mono"]))
