"""Ranks that a partition has taken from the job: what proves it, and what they must not do, nor how they may end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.plan.job_effect import SUSPENSION
from tests.kit.runs.good_run import GoodRun, Record, pid_of, record
from tests.unit.checks.judging import Judge, not_passed, said

PLACE: Record = {"attempt": "train", "rank": 2, "pid": pid_of("train", 2)}
ENDING = 11.9
SHOWN: Record = {
    "signal": None,
    "connections": 3,
    "lost": [[1, 0], [0, 1]],
    "ways": 2,
    "echoes": {"sent": 2, "answered": 0},
}


def cut_off(run: GoodRun, *, seconds: float | None = None, **at_end: Any) -> GoodRun:
    """The good run with rank 2 cut off, not killed. With ``seconds`` it ends by itself, else the teardown ends it."""
    (fault,) = run.plan.faults
    parameters = {} if seconds is None else {"seconds": seconds}
    run.replan(faults=(replace(fault, kind="partition", effect=SUSPENSION, parameters=parameters),))
    run.only("fault.injecting").update(signal=None, kind="partition")
    landed = run.only("fault.landed")
    landed.update(kind="partition")
    landed["evidence"][0].update(SHOWN)
    how = {"signal": 9, "code": None} if seconds is None else {"signal": None, "code": 1}
    run.drop("rank.exit", attempt="train", rank=2)
    run.add("harness", record(12.05, "rank.exit", "train", 2, PLACE["pid"], **how))
    still = {"rank": 2, "pid": PLACE["pid"], "lost": SHOWN["lost"], "ways": 2, **at_end}
    run.add("harness", record(ENDING, "fault.ending", "train", fault="kill-1", evidence=[still]))
    return run


@pytest.mark.parametrize("seconds", [None, 0.5])
def test_ranks_that_do_nothing_more_pass(seconds: float | None, run: GoodRun, judged: Judge) -> None:
    assert not_passed(judged(cut_off(run, seconds=seconds))) == []


@pytest.mark.parametrize("seconds", [None, 0.5])
@pytest.mark.parametrize(
    ("at", "event", "fields", "reason"),
    [
        (11.5, "handler.enter", {"name": "rename"}, "handler rename was called on rank 2"),
        (11.5, "handler.enter", {"name": "save_ckpt"}, "handler save_ckpt was called on rank 2"),
        (11.95, "handler.enter", {"name": "rename"}, "handler rename was called on rank 2"),
        (11.95, "checkpoint.begin", {"kind": "end-of-life", "step": 5}, "rank 2 saved an end-of-life checkpoint"),
        (11.95, "step.end", {"step": 6}, "rank 2 ended step 6 when the network was back, without the others"),
    ],
)
def test_what_they_must_not_do_fails(
    seconds: float | None,
    at: float,
    event: str,
    fields: dict[str, Any],
    reason: str,
    run: GoodRun,
    judged: Judge,
) -> None:
    cut_off(run, seconds=seconds)
    run.add("train-rank_2", record(at, event, **PLACE, **fields))
    assert said(judged(run), "mechanism", "fail", reason)


def test_a_step_that_ends_while_they_are_cut_off_disproves_the_partition(run: GoodRun, judged: Judge) -> None:
    run.add("train-rank_2", record(11.4, "step.end", **PLACE, step=6))
    assert said(judged(cut_off(run)), "injection", "unknown", "rank 2 went on after the landing: step.end")


@pytest.mark.parametrize(
    ("at_end", "reason"),
    [
        ({"lost": [[1, 0]]}, "packets are lost on ways [[1, 0]], of 2"),
        ({"lost": []}, "packets are lost on ways [], of 2"),
        ({"pid": 1}, "process 1 was checked"),
    ],
)
@pytest.mark.parametrize("seconds", [None, 0.5])
def test_a_partition_that_had_vanished_at_its_end_is_unproven(
    seconds: float | None, at_end: dict[str, Any], reason: str, run: GoodRun, judged: Judge
) -> None:
    assert said(judged(cut_off(run, seconds=seconds, **at_end)), "injection", "unknown", reason)


def test_a_partition_that_nobody_looked_at_is_unproven(run: GoodRun, judged: Judge) -> None:
    cut_off(run).drop("fault.ending")
    assert said(judged(run), "injection", "unknown", "no check was made whether rank 2 was still under the fault")


def test_one_that_ended_with_the_launch_before_its_time_is_unproven(run: GoodRun, judged: Judge) -> None:
    assert said(judged(cut_off(run, seconds=20)), "injection", "unknown", "it was planned for 20 s, but ended with")


@pytest.mark.parametrize(
    ("seconds", "how", "check", "reason"),
    [
        (None, {"signal": None, "code": 0}, "hygiene", "code 0"),
        (0.5, {"signal": None, "code": 0}, "hygiene", "code 0"),
        (0.5, {"signal": 9, "code": None}, "mechanism", "rank 2 had to be ended, by signal 9"),
    ],
)
def test_an_end_that_is_not_theirs_fails(
    seconds: float | None, how: dict[str, Any], check: str, reason: str, run: GoodRun, judged: Judge
) -> None:
    cut_off(run, seconds=seconds)
    run.only("rank.exit", attempt="train", rank=2).update(how)
    assert said(judged(run), check, "fail", reason)


def test_an_end_while_they_are_cut_off_is_not_for_want_of_a_controller(run: GoodRun, judged: Judge) -> None:
    cut_off(run, seconds=0.5).drop("rank.exit", attempt="train", rank=2)
    run.add("harness", record(11.85, "rank.exit", "train", 2, PLACE["pid"], signal=None, code=1))
    assert said(judged(run), "mechanism", "fail", "rank 2 ended while it was still cut off")
