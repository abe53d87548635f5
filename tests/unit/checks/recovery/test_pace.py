"""A recovery after which each step stays slower is none; a busy machine is not taken for one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checks.recovery.pace import EXPECTED, SAMPLES
from chaos.plan.job_effect import NONE
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import LAST, RANKS, SAVED, GoodRun, good_run, record
from tests.kit.runs.repaired_run import STRUCK, uce_run
from tests.kit.runs.replaced_run import replaced_run
from tests.kit.runs.rolled_back_run import rolled_back_run
from tests.unit.checks.judging import Judge, not_passed, said

LEFT_OUT = "that steps take as long after the recovery as before it"
RUNS: dict[str, Callable[[], GoodRun]] = {
    "TTP": good_run,
    "UCE": uce_run,
    "ARF": replaced_run,
    "TRE": rolled_back_run,
}


def slowed(run: GoodRun, seconds: float, first: int, last: int = LAST, attempt: str = "resume") -> GoodRun:
    """Each step from ``first`` to ``last`` takes so much longer; whatever follows comes as much later."""
    more = round(seconds * 1e9)
    for records in run.files.values():
        late = 0
        again = attempt == "resume"
        for event in records:
            if event.get("attempt") == attempt and event["event"] == "train.begin":
                again = again or event.get("initial_step", 0) > 0
            ends = again and event.get("attempt") == attempt and event["event"] == "step.end"
            late += more if ends and first <= event["step"] <= last else 0
            for key in ("mono", "wall"):
                event[key] += late
    return run


def after_all(run: GoodRun, attempt: str) -> None:
    """What the harness records after the steps comes after them."""
    latest = max(event["mono"] for name, records in run.files.items() if name != "harness.jsonl" for event in records)
    moved = 0
    for event in run.files["harness.jsonl"]:
        if event["event"] in ("rank.exit", "launcher.exit", "attempt.end", "hygiene", "run.end", "fault.healed"):
            moved = max(moved, latest + 1 - event["mono"]) if event.get("attempt", attempt) == attempt else moved
        for key in ("mono", "wall"):
            event[key] += moved


def left_out(run: GoodRun, judged: Judge) -> list[str]:
    return [exclusion.reason for exclusion in judged(run).not_checked if exclusion.what == LEFT_OUT]


@pytest.mark.parametrize("mechanism", RUNS)
def test_a_good_recovery_has_the_pace_of_before(judged: Judge, mechanism: str) -> None:
    judgement = judged(RUNS[mechanism]())
    assert [one for one in not_passed(judgement) if one[1] == "recovery"] == []
    assert said(judgement, "recovery", "pass", EXPECTED)


def test_a_job_that_stays_slower_after_the_resume_fails(judged: Judge) -> None:
    run = slowed(good_run(), 0.4, SAVED + 1)
    after_all(run, "resume")
    assert said(
        judged(run),
        "recovery",
        "fail",
        f"{EXPECTED} | the fastest step takes 440.0 ms after the recovery, the slower steps 40.0",
    )


def test_a_job_that_stays_slower_after_a_repair_fails(judged: Judge) -> None:
    run = slowed(uce_run(), 0.4, STRUCK, attempt="train")
    after_all(run, "train")
    assert said(judged(run), "recovery", "fail", EXPECTED)


@pytest.mark.parametrize(("seconds", "last"), [(0.4, LAST - 1), (0.04, LAST)])
def test_one_step_as_fast_as_before_or_a_little_more_time_passes(judged: Judge, seconds: float, last: int) -> None:
    run = slowed(good_run(), seconds, SAVED + 1, last)
    after_all(run, "resume")
    assert said(judged(run), "recovery", "pass", EXPECTED)


def test_a_machine_that_kept_the_job_waiting_is_told_and_nobody_is_blamed(judged: Judge) -> None:
    run = slowed(good_run(), 0.4, SAVED + 1)
    after_all(run, "resume")
    begin, end = (run.only(name, attempt="resume", rank=0)["mono"] for name in ("train.begin", "train.end"))
    waited = {"process": "rank 0 (process 1)", "seconds": 0.6 * (end - begin) / 1e9, "since": begin, "until": end}
    run.add("harness", {**record(0, "job.starved", attempt="resume", **waited), "mono": end, "wall": end})
    run.files["harness.jsonl"][-1]["wall"] = run.only("train.end", attempt="resume", rank=0)["wall"]
    judgement = judged(run)
    assert not said(judgement, "recovery", "fail", EXPECTED)
    (reason,) = (exclusion.reason for exclusion in judgement.not_checked if exclusion.what == LEFT_OUT)
    assert "440.0 ms after the recovery" in reason
    assert "other work on the machine kept the job waiting" in reason


def test_too_few_steps_are_told(judged: Judge) -> None:
    run = good_run()
    for rank in range(RANKS):
        for step in range(LAST - 3, LAST + 1):
            run.drop("step.end", attempt="resume", rank=rank, step=step)
    (reason,) = left_out(run, judged)
    assert reason.endswith(f"2 afterwards: at least {SAMPLES} are needed afterwards, and {SAMPLES} to compare with")


def test_where_a_fault_slows_the_job_itself_its_pace_is_not_judged(judged: Judge) -> None:
    run = good_run()
    load = PlannedFault("load", "cpu-load", (0,), {"step": 1}, {}, None, 15, NONE)
    run.replan(faults=(*run.plan.faults, load))
    assert left_out(run, judged) == ["fault load may make steps slower itself"]
