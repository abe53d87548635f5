"""Where nothing can save the job, a pass says that the SDK was there and ended it, not that nothing was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.mechanisms.clean_exit import EXPECTED
from chaos.plan.job_effect import MEMORY
from tests.kit.runs.good_run import VICTIM, GoodRun, Record, pid_of, record
from tests.unit.checks.judging import Judge, not_passed, said
from tests.unit.checks.limits import ended_run

OUTSIDE = ended_run().log[0][1]
INSIDE = (2.1, OUTSIDE.replace("-1", "0"))
IN_VICTIM = (2.1, OUTSIDE.replace("-1", str(VICTIM)))


@pytest.fixture
def run() -> GoodRun:
    return ended_run()


def silent(run: GoodRun) -> None:
    """The SDK calls no handler and says no more; whoever is left ends by other means."""
    run.drop("handler.enter", name="exit")
    run.log = [(at, text) for at, text in run.log if "EXIT" not in text]


def hosted_by_victim(run: GoodRun) -> None:
    """The controller was in the rank that the fault ends: it told nobody, and its log ends with it."""
    run.log = [IN_VICTIM, (2.2, "nextState: STATE_OP_NORMAL")]


def test_it_told_every_rank_that_lives(run: GoodRun, judged: Judge) -> None:
    judgement = judged(run)
    assert not_passed(judgement) == []
    assert said(judgement, "mechanism", "pass", f"{EXPECTED} | it told ranks 0-1,3")


def test_a_silent_sdk_leaves_it_unknown(run: GoodRun, judged: Judge) -> None:
    silent(run)
    seen = "neither a call of handler exit nor the SDK's log shows that it ended the job"
    assert said(judged(run), "mechanism", "unknown", f"{EXPECTED} | {seen}")


def test_without_the_sdk_nothing_is_known(run: GoodRun, judged: Judge) -> None:
    silent(run)
    run.log = []
    seen = "neither a call of handler exit nor a log of the SDK shows that it ended the job"
    assert said(judged(run), "mechanism", "unknown", f"{EXPECTED} | {seen}")


@pytest.mark.parametrize("log", [True, False])
def test_a_rank_that_nobody_told_leaves_it_unknown(run: GoodRun, judged: Judge, log: bool) -> None:
    run.drop("handler.enter", name="exit", rank=1)
    run.log = run.log if log else []
    assert said(judged(run), "mechanism", "unknown", f"{EXPECTED} | no record shows that rank 1 was told to exit")


def test_a_controller_that_leaves_with_its_rank_may_have_told_nobody_else(run: GoodRun, judged: Judge) -> None:
    """The vendor's; the last lines of its log may be lost too."""
    run.log = [INSIDE, *run.log[1:-1]]
    for rank in (1, 3):
        run.drop("handler.enter", name="exit", rank=rank)
    judgement = judged(run)
    assert said(judgement, "mechanism", "pass", f"{EXPECTED} | it told rank 0")


def test_the_host_itself_is_told(run: GoodRun, judged: Judge) -> None:
    run.log = [INSIDE, *run.log[1:]]
    run.drop("handler.enter", name="exit", rank=0)
    assert said(judged(run), "mechanism", "unknown", f"{EXPECTED} | no record shows that rank 0 was told to exit")


@pytest.mark.parametrize("told", [True, False])
def test_a_controller_that_dies_with_its_rank_can_tell_nobody(run: GoodRun, judged: Judge, told: bool) -> None:
    """The vendor's others wait in their collective; the stand-in's find that it is gone."""
    hosted_by_victim(run)
    if not told:
        run.drop("handler.enter", name="exit")
    judgement = judged(run)
    assert said(judgement, "mechanism", "pass", f"{EXPECTED} | its controller was in rank {VICTIM}, and gone with it")


def with_own_record(run: GoodRun, event: str) -> None:
    place: Record = {"attempt": "train", "rank": VICTIM, "pid": pid_of("train", VICTIM)}
    run.add(f"train-rank_{VICTIM}", record(3.1, event, **place))


@pytest.mark.parametrize(
    ("events", "verdict", "by_log"),
    [((), "pass", True), (("sdk.connected", "sdk.controller"), "pass", False), (("sdk.connected",), "fail", False)],
)
def test_where_the_controller_was_its_host_tells_too(
    run: GoodRun, judged: Judge, events: tuple[str, ...], verdict: str, by_log: bool
) -> None:
    hosted_by_victim(run)
    for event in events:
        with_own_record(run, event)
    (finding,) = said(judged(run), "mechanism", verdict, f"its controller {'was ' if verdict == 'pass' else ''}in rank")
    assert finding.by_log is by_log


def test_that_only_a_log_tells_of_the_end_is_said(run: GoodRun, judged: Judge) -> None:
    run.drop("handler.enter", name="exit")
    run.replan(faults=(*run.plan.faults, replace(run.plan.faults[0], id="others", ranks=(0, 1, 3))))
    (finding,) = [
        candidate
        for candidate in judged(run).findings
        if candidate.expected == EXPECTED and candidate.verdict == "pass"
    ]
    assert finding.by_log and finding.seen == "it ended the job, by its log, by lines of a log alone"


def test_a_rank_that_only_reports_an_error_takes_no_controller_along(run: GoodRun, judged: Judge) -> None:
    hosted_by_victim(run)
    run.drop("handler.enter", name="exit")
    run.replan(faults=(replace(run.plan.faults[0], effect=MEMORY),))
    assert said(judged(run), "mechanism", "unknown", "nor the SDK's log shows that it ended the job")


@pytest.mark.parametrize(("signal", "excused"), [(9, True), (None, False), (11, False)])
def test_an_agent_may_end_a_rank_before_the_sdk_tells_it(
    run: GoodRun, judged: Judge, signal: int | None, excused: bool
) -> None:
    run.replan(strategies=("exit",))
    run.log.insert(3, (11.2, "do action report_strategies, arg=({2: 1}, ['exit', 'dump'])"))
    run.drop("handler.enter", name="exit", rank=3)
    run.only("rank.exit", attempt="train", rank=3).update(signal=signal, code=None if signal else 1)
    seen = said(judged(run), "mechanism", "unknown", "no record shows that rank 3 was told to exit")
    assert bool(seen) is not excused


def test_without_an_agent_a_rank_that_was_killed_was_not_told(run: GoodRun, judged: Judge) -> None:
    run.drop("handler.enter", name="exit", rank=3)
    run.only("rank.exit", attempt="train", rank=3).update(signal=9, code=None)
    assert said(judged(run), "mechanism", "unknown", "no record shows that rank 3 was told to exit")


def test_a_controller_that_goes_to_save_contradicts_the_plan(run: GoodRun, judged: Judge) -> None:
    run.log.insert(3, (11.15, "nextState: STATE_OP_DUMP"))
    assert said(judged(run), "mechanism", "fail", f"{EXPECTED} | its controller went to save")


@pytest.mark.parametrize("on", [("RSC",), ("TRE",), ("TSP",), ()])
def test_where_the_sdk_watches_over_nobody_nothing_is_said(run: GoodRun, judged: Judge, on: tuple[str, ...]) -> None:
    silent(run)
    run.replan(protection=on)
    assert not [finding for finding in judged(run).findings if finding.expected == EXPECTED]


def test_the_exit_of_the_resumed_job_counts_for_nothing(run: GoodRun, judged: Judge) -> None:
    silent(run)
    place: Record = {"attempt": "resume", "rank": 0, "pid": pid_of("resume", 0)}
    run.add("train-rank_0", record(13.0, "handler.enter", name="exit", **place))
    assert said(judged(run), "mechanism", "unknown", "nor the SDK's log shows that it ended the job")
