"""A rank that was stopped or cut off proves its fault only if nobody let it go on before the harness did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.kit.runs.good_run import GoodRun, Record, pid_of, record
from tests.unit.checks.judging import Judge, not_passed, said

PLACE: Record = {"attempt": "train", "rank": 2, "pid": pid_of("train", 2)}
OF_NODE: dict[str, Any] = {
    "suspend": {},
    "node-pause": {"node": {"status": "paused", "connected": True}},
    "node-disconnect": {"node": {"status": "running", "connected": False}},
}


def silenced(run: GoodRun, kind: str, phase: str = "step.end", *, looked: bool = True, **at_end: Any) -> GoodRun:
    """The good run with rank 2 silenced, not killed: the others save, and the teardown ends it."""
    signal = 19 if kind == "suspend" else None
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, kind=kind, trigger={**fault.trigger, "phase": phase}),))
    run.only("fault.injecting").update(signal=signal, kind=kind)
    landed = run.only("fault.landed")
    landed.update(kind=kind, phase=phase)
    landed["evidence"][0].update(signal=signal, **OF_NODE[kind])
    landed["evidence"][0]["barrier"]["phase"] = run.only("barrier.reached")["phase"] = phase
    run.drop("rank.exit", attempt="train", rank=2)
    run.add("harness", record(12.05, "rank.exit", "train", 2, PLACE["pid"], signal=9, code=None))
    if looked:
        shown = {"rank": 2, "pid": PLACE["pid"], "signal": signal, **OF_NODE[kind], **at_end}
        run.add("harness", record(11.97, "fault.ending", "train", fault="kill-1", evidence=[shown]))
    return run


def also(run: GoodRun, *events: tuple[float, str, int | None]) -> GoodRun:
    """Rank 2 records that too."""
    for at, name, step in events:
        place = PLACE if step is None else {**PLACE, "step": step}
        run.add("train-rank_2", record(at, name, **place))
    return run


def doubt(run: GoodRun, judged: Judge) -> str:
    """What the check says against the fault; empty where it is proven."""
    judgement = judged(run)
    found = [finding for finding in judgement.findings if finding.check == "injection" and finding.verdict != "pass"]
    assert {finding.verdict for finding in found} <= {"unknown"}
    assert found == [] or judgement.verdict == "unknown", not_passed(judgement)
    return " | ".join(finding.seen for finding in found)


@pytest.mark.parametrize("looked", [True, False])
@pytest.mark.parametrize("kind", OF_NODE)
def test_a_rank_that_says_nothing_until_it_is_let_go_was_silenced(
    kind: str, looked: bool, run: GoodRun, judged: Judge
) -> None:
    assert not_passed(judged(silenced(run, kind, looked=looked))) == []


@pytest.mark.parametrize("looked", [True, False])
@pytest.mark.parametrize("kind", ["suspend", "node-pause"])
@pytest.mark.parametrize("at", [10.9, 11.9])
def test_a_rank_that_says_anything_before_was_let_go(
    kind: str, looked: bool, at: float, run: GoodRun, judged: Judge
) -> None:
    also(silenced(run, kind, looked=looked), (at, "step.begin", 6))
    assert "rank 2 went on after the landing: step.begin" in doubt(run, judged)


@pytest.mark.parametrize("kind", OF_NODE)
def test_what_it_says_when_it_was_let_go_is_no_doubt(kind: str, run: GoodRun, judged: Judge) -> None:
    also(silenced(run, kind), (11.98, "barrier.released", None), (11.99, "step.begin", 6))
    assert doubt(run, judged) == ""


def test_without_a_look_at_the_end_its_barrier_may_let_it_go_before_the_heal_is_recorded(
    run: GoodRun, judged: Judge
) -> None:
    assert doubt(also(silenced(run, "suspend", looked=False), (11.98, "barrier.released", None)), judged) == ""


def test_a_rank_that_leaves_its_barrier_before_the_end_was_let_go(run: GoodRun, judged: Judge) -> None:
    also(silenced(run, "suspend"), (11.9, "barrier.released", None))
    assert "rank 2 went on after the landing: barrier.released" in doubt(run, judged)


@pytest.mark.parametrize(
    ("phase", "events", "reason"),
    [
        ("optimizer.update", [(10.9, "step.end", 5)], ""),  # all collectives of the step are behind it
        ("optimizer.update", [(10.9, "step.end", 5), (10.91, "step.begin", 6)], ""),  # its history it may write
        ("step.end", [(11.32, "step.begin", 6), (11.33, "step.end", 6)], "went on after the landing: step.end"),
        ("forward", [(10.9, "step.end", 5)], "went on after the landing: step.end"),
    ],
)
def test_a_rank_that_is_cut_off_ends_no_step_that_needs_the_others(
    phase: str, events: list[tuple[float, str, int | None]], reason: str, run: GoodRun, judged: Judge
) -> None:
    also(silenced(run, "node-disconnect", phase), *events)
    if phase != "step.end":
        (early, *_) = run.events("step.end", attempt="train", rank=2, step=5)
        run.files[next(name for name in run.files if name.startswith("train-rank_2"))].remove(early)
    found = doubt(run, judged)
    assert reason in found
    assert bool(reason) == bool(found)


@pytest.mark.parametrize(
    ("kind", "at_end"),
    [
        ("suspend", {"signal": None}),
        ("node-pause", {"node": {"status": "running"}}),
        ("node-disconnect", {"node": {"status": "running", "connected": True}}),
    ],
)
def test_one_that_was_no_longer_so_at_its_end_proves_nothing(
    kind: str, at_end: dict[str, Any], run: GoodRun, judged: Judge
) -> None:
    found = doubt(silenced(run, kind, **at_end), judged)
    assert "nothing shows that rank 2 was under the fault up to its end: another process may have continued it" in found


def test_another_process_at_the_end_proves_nothing(run: GoodRun, judged: Judge) -> None:
    assert "its process was not looked at then" in doubt(silenced(run, "suspend", pid=1), judged)
    run.only("fault.ending")["evidence"].clear()
    assert "its process was not looked at then" in doubt(run, judged)


@pytest.mark.parametrize(("signal", "reason"), [(9, ""), (15, "it had ended, but not by SIGKILL")])
def test_a_stopped_rank_that_ended_before_was_killed_and_nothing_else(
    signal: int, reason: str, run: GoodRun, judged: Judge
) -> None:
    silenced(run, "suspend", signal=None, ended=True)
    run.only("rank.exit", attempt="train", rank=2)["signal"] = signal
    findings = said(judged(run), "injection", "unknown", "it had ended")
    assert [reason in finding.seen for finding in findings] == [True] * bool(reason)


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        (1.0, ""),
        (2.0, "it was planned for 2 s, but ended with the launch after"),
    ],
)
def test_a_stop_with_a_time_lasts_as_long_as_planned(seconds: float, reason: str, run: GoodRun, judged: Judge) -> None:
    silenced(run, "suspend")
    run.replan(faults=(replace(run.plan.faults[0], parameters={"seconds": seconds}),))
    found = doubt(run, judged)
    assert reason in found if reason else found == ""


def test_a_stop_with_a_time_needs_a_record_of_its_end(run: GoodRun, judged: Judge) -> None:
    silenced(run, "suspend", looked=False)
    run.replan(faults=(replace(run.plan.faults[0], parameters={"seconds": 1.0}),))
    assert "its end is not recorded; planned was 1 s" in doubt(run, judged)
