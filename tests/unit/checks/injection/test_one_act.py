"""All that is recorded of a fault must be of one act: a second one is a failure, a contradiction is unknown."""

from __future__ import annotations

import pytest

from chaos.checks.injection.contradictions import other_act_doubts, repeated_acts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import DEATH
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import GoodRun, Mutate, Record, pid_of
from tests.kit.runs.replaced_run import NEW_PID, replaced_run
from tests.unit.checks.judging import Judge, cases_of, said

VICTIM_PID = pid_of("train", 2)


def launcher_ends_by_both(run: GoodRun) -> None:
    run.only("launcher.exit", attempt="resume").update(signal=7, code=0)


def exit_of_another_process(attempt: str, rank: int) -> Mutate:
    """The PID was given again, and how that process ended was recorded."""

    def spoil(run: GoodRun) -> None:
        found = run.only("rank.found", attempt=attempt, rank=rank)
        run.only("rank.exit", attempt=attempt, rank=rank)["start_time"] = found["start_time"] + 1

    return spoil


DOUBTED: dict[str, list[tuple[Mutate, str]]] = {
    "injection": [
        (lambda run: run.only("fault.injecting").update(kind="suspend"), "recorded as a fault of kind suspend"),
        (lambda run: run.only("fault.landed").update(kind="suspend"), "recorded as a fault of kind suspend"),
        (lambda run: run.only("fault.injecting").update(signal=15), "SIGTERM was sent, not SIGKILL"),
        (lambda run: run.only("fault.landed").update(attempt="resume"), "the landing is of attempt resume"),
        (exit_of_another_process("train", 2), "not that of the process that was hit: its start time differs"),
    ],
    "hygiene": [
        (exit_of_another_process("train", 1), "is not that of the process which was rank 1: its start time differs"),
        (exit_of_another_process("resume", 0), "is not that of the process which was rank 0: its start time differs"),
        (launcher_ends_by_both, "ended by SIGBUS and exit code 0"),
    ],
}


@pytest.mark.parametrize(("check", "spoil", "reason"), cases_of(DOUBTED))
def test_what_contradicts_itself_is_unknown(
    run: GoodRun, judged: Judge, check: str, spoil: Mutate, reason: str
) -> None:
    spoil(run)
    judgement = judged(run)
    assert said(judgement, check, "unknown", reason)
    assert judgement.verdict == "unknown"


def test_an_exit_status_with_its_start_time_is_that_of_the_process(run: GoodRun, judged: Judge) -> None:
    for record in run.events("rank.found"):
        run.only("rank.exit", attempt=record["attempt"], rank=record["rank"])["start_time"] = record["start_time"]
    assert judged(run).verdict == "pass"


def test_a_baseline_whose_rank_ended_by_a_signal_is_none(run: GoodRun, judged: Judge) -> None:
    assert run.baseline is not None
    ends = [record for records in run.baseline.values() for record in records if record["event"] == "rank.exit"]
    ends[1]["signal"] = 9
    assert said(judged(run), "loss", "unknown", "of the baseline did not end well")


def test_a_fault_that_hits_the_new_process_too_was_made_twice(judged: Judge) -> None:
    run = replaced_run()
    act = run.only("fault.injecting")
    later: Record = {**act, "pid": NEW_PID, "mono": act["mono"] + 1000, "wall": act["wall"] + 1000}
    run.add("harness", later)
    judgement = judged(run)
    assert said(judgement, "injection", "fail", "injected twice: 1 landings, 2 injections")


FAULT = PlannedFault("it", "segfault", (2,), {"step": 5, "phase": "forward"}, {}, None, 9, DEATH)


def event(name: str, *, rank: int | None = 2, pid: int = 77, attempt: str = "train", **data: object) -> Event:
    return Event(name, 10, 10, "agent", 1, attempt, rank, pid, {"fault": "it", **data}, f"{name}:{pid}")


ACT = event("fault.acting", act="segfault")


def doubts(*recorded: Event) -> list[str]:
    landing = event("fault.landed", rank=None, kind="segfault")
    orders = [event("fault.injecting", kind="segfault", signal=None)]
    return [text for text, _ in other_act_doubts(History(recorded, ()), FAULT, landing, orders, 11)]


def test_the_one_act_of_the_rank_that_was_told_is_not_doubted() -> None:
    assert doubts(ACT) == []
    assert repeated_acts(History((ACT,), ()), FAULT) == []


@pytest.mark.parametrize(
    "name", ["fault.acting", "fault.raised", "fault.altered", "fault.scaled", "fault.slowed", "fault.ended"]
)
@pytest.mark.parametrize("other", [{"rank": 1}, {"pid": 78}, {"attempt": "resume"}])
def test_who_does_it_without_being_told_makes_it_another_act(name: str, other: dict[str, object]) -> None:
    (text,) = doubts(ACT, event(name, **other))  # type: ignore[arg-type]
    assert "without being told to" in text


def test_a_rank_that_does_it_again_in_its_next_process_makes_it_twice() -> None:
    again = event("fault.acting", pid=78, attempt="resume", act="segfault")
    assert repeated_acts(History((ACT, again), ()), FAULT) == [ACT, again]
