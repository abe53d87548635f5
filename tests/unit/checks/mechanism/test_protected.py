"""After a recovery every rank is protected as before: handlers, connection and reports are on again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chaos.checks.mechanism.protected import EXPECTED
from chaos.evidence.protection import CONNECTED, DISCONNECTED, PAUSED, REGISTERED, REPORTED
from tests.kit.runs.good_run import LAST, RANKS, GoodRun, good_run, record
from tests.kit.runs.repaired_run import uce_run
from tests.kit.runs.replaced_run import NEW_PID, VICTIM, replaced_run
from tests.unit.checks.judging import Judge, not_passed, said

HANDLERS = ("save_ckpt", "clean", "exit")
RUNS = {"repaired": uce_run, "replaced": replaced_run, "resumed": good_run}


def protected(run: GoodRun) -> GoodRun:
    """Every process of a rank records its protection as an agent does."""
    for name, records in run.files.items():
        if "-rank_" in name:
            run.files[name] = [one for each in records for one in _with_protection(each)]
    return run


def _with_protection(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def added(event: str, late: float, **fields: Any) -> dict[str, Any]:
        place = {name: entry[name] for name in ("attempt", "rank", "pid")}
        return record(entry["mono"] / 1e9 - record(0, "")["mono"] / 1e9 + late, event, **place, **fields)

    yield entry
    if entry["event"] == "sdk.imported":
        yield added(CONNECTED, 0.001)
        yield from (added(REGISTERED, 0.002, name=name, function=f"job.{name}") for name in HANDLERS)
    elif entry["event"] == "digest":
        yield added(REPORTED, 0.0001, step=entry["step"])
        yield added(PAUSED, 0.0002, step=entry["step"])
    elif entry["event"] == "train.end":
        yield added(DISCONNECTED, 0.001)


@pytest.mark.parametrize("name", RUNS)
def test_a_job_that_is_protected_again_passes(judged: Judge, name: str) -> None:
    judgement = judged(protected(RUNS[name]()))
    assert not_passed(judgement) == []
    assert said(judgement, "mechanism", "pass", f"{EXPECTED} | {RANKS} processes are")


def test_of_agents_that_record_no_protection_nothing_is_said(judged: Judge) -> None:
    judgement = judged(uce_run())
    assert judgement.verdict == "pass"
    assert [finding for finding in judgement.findings if finding.expected == EXPECTED] == []
    assert "that handlers and reports to the SDK are on again after the recovery" in {
        exclusion.what for exclusion in judgement.not_checked
    }


def last_steps(run: GoodRun, rank: int, event: str = REPORTED) -> list[dict[str, Any]]:
    return sorted(run.events(event, rank=rank), key=lambda entry: entry["mono"])[-2:]


def not_reported_again(run: GoodRun) -> None:
    gone = last_steps(run, 0)
    for name, records in run.files.items():
        run.files[name] = [event for event in records if event not in gone]


def no_rank_reports_again(run: GoodRun) -> None:
    struck = run.only("fault.injecting")["mono"]
    for name, records in run.files.items():
        run.files[name] = [event for event in records if event["event"] != REPORTED or event["mono"] < struck]


def not_paused_again(run: GoodRun) -> None:
    gone = last_steps(run, 1, PAUSED)
    for name, records in run.files.items():
        run.files[name] = [event for event in records if event not in gone]


def left_early(run: GoodRun) -> None:
    run.only(DISCONNECTED, rank=1)["mono"] = run.only("fault.injecting")["mono"] + 1_000_000_000
    name = next(name for name in run.files if name.startswith("train-rank_1-"))
    run.files[name].sort(key=lambda event: event["mono"])


def another_function(run: GoodRun) -> None:
    one = run.only(REGISTERED, rank=0, name="clean")
    late = {"mono": run.only("train.end", rank=0)["mono"] - 1_000_000, "function": "job.nothing"}
    name = next(name for name in run.files if name.startswith("train-rank_0-"))
    run.files[name].append({**one, **late})
    run.files[name].sort(key=lambda event: event["mono"])


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("repaired", not_reported_again, "rank 0 has not reported the update of step 11, 12, as it did"),
        ("repaired", no_rank_reports_again, "rank 3 has not reported the update of step 6, 7"),
        ("repaired", not_paused_again, "rank 1 has not come to the point of a pause behind step 11, 12"),
        ("repaired", left_early, "rank 1 left the SDK before its step 12 ended"),
        ("repaired", another_function, "rank 0's handler clean is job.nothing, not job.clean"),
        (
            "replaced",
            lambda run: run.drop(REGISTERED, pid=NEW_PID, name="clean"),
            f"rank {VICTIM}'s process {NEW_PID} has registered no handler clean",
        ),
        (
            "replaced",
            lambda run: run.drop(CONNECTED, pid=NEW_PID),
            f"rank {VICTIM}'s process {NEW_PID} has not connected to the SDK",
        ),
        (
            "resumed",
            lambda run: run.drop(REGISTERED, attempt="resume", rank=1),
            "has registered no handler save_ckpt, clean, exit",
        ),
        ("resumed", lambda run: run.drop(REPORTED, attempt="resume", rank=1), "rank 1 has not reported the update of"),
    ],
)
def test_what_is_off_after_the_recovery_fails(
    judged: Judge, name: str, spoil: Callable[[GoodRun], object], words: str
) -> None:
    run = protected(RUNS[name]())
    spoil(run)
    assert said(judged(run), "mechanism", "fail", words)


def reported_within(run: GoodRun) -> GoodRun:
    """Every update is reported before the step's end is recorded, as in PyTorch: the optimizer itself reports it."""
    for records in run.files.values():
        ends = {(entry["step"], entry["attempt"]): entry["mono"] for entry in records if entry["event"] == "step.end"}
        for entry in records:
            if entry["event"] == REPORTED:
                entry["mono"] = ends[entry["step"], entry["attempt"]] - 1_000
        records.sort(key=lambda entry: entry["mono"])
    return run


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("repaired", not_reported_again, "rank 0 has not reported the update of step 11, 12, as it did"),
        ("resumed", lambda run: run.drop(REPORTED, attempt="resume", rank=1), "rank 1 has not reported the update of"),
    ],
)
def test_reports_within_a_step_are_missed_as_those_behind_it(
    judged: Judge, name: str, spoil: Callable[[GoodRun], object], words: str
) -> None:
    assert not_passed(judged(reported_within(protected(RUNS[name]())))) == []
    run = reported_within(protected(RUNS[name]()))
    spoil(run)
    assert said(judged(run), "mechanism", "fail", words)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (REGISTERED, "rank 1 has recorded no handler before the fault"),
        (CONNECTED, "rank 1 has recorded no connection to the SDK"),
        (REPORTED, "rank 1 is not recorded to have reported the update of a step before the fault"),
        (DISCONNECTED, "when rank 1 has left the SDK is not recorded, as it is of others"),
    ],
)
def test_where_one_rank_has_no_record_it_is_unknown(judged: Judge, event: str, words: str) -> None:
    run = protected(uce_run())
    run.drop(event, rank=1)
    if event == CONNECTED:
        run.drop(DISCONNECTED, rank=1)
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    assert said(judgement, "mechanism", "unknown", words)


def overflowed(run: GoodRun, step: int) -> None:
    """Let no rank make an update in a step, in this run and in the fault-free one."""
    for files in (run.files, run.baseline or {}):
        for records in files.values():
            states = {one["step"]: one["parameters"] for one in records if one["event"] == "digest"}
            for one in records:
                if one["event"] == "digest" and one["step"] == step:
                    one["parameters"] = states[step - 1]


def test_a_step_that_no_rank_reports_has_overflowed(judged: Judge) -> None:
    run = protected(uce_run())
    run.drop(REPORTED, step=9)
    overflowed(run, 9)
    assert not said(judged(run), "mechanism", "fail", EXPECTED)


@pytest.mark.parametrize("first", [9, 10])
def test_an_update_that_no_rank_reports_fails(judged: Judge, first: int) -> None:
    """From the recovery on some steps are reported, and none from this one on."""
    run = protected(uce_run())
    for step in range(first, LAST + 1):
        run.drop(REPORTED, step=step)
    judgement = judged(run)
    for rank in range(RANKS):
        assert said(judgement, "mechanism", "fail", f"rank {rank} has not reported the update of step {first}, ")


def test_without_the_states_an_unreported_step_may_have_overflowed(judged: Judge) -> None:
    run = protected(uce_run())
    run.drop(REPORTED, step=9)
    run.drop("digest", step=9)
    judgement = judged(run)
    assert not said(judgement, "mechanism", "fail", EXPECTED)
    assert judgement.verdict == "unknown"


def test_updates_that_no_rank_has_ever_reported_are_unknown(judged: Judge) -> None:
    run = protected(uce_run())
    run.drop(REPORTED)
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    for rank in range(RANKS):
        words = f"rank {rank} is not recorded to have reported an update before the fault"
        assert said(judgement, "mechanism", "unknown", words)


def test_ranks_that_could_save_nothing_owe_no_reports(judged: Judge) -> None:
    """For a pause the SDK counts no updates."""
    run = protected(uce_run())
    run.drop(REPORTED)
    run.drop(REGISTERED, name="save_ckpt")
    assert not_passed(judged(run)) == []


def test_a_rank_that_was_hit_before_it_registered_is_not_compared(judged: Judge) -> None:
    run = protected(replaced_run())
    for one in ("step.end", "digest", REGISTERED, CONNECTED, REPORTED, PAUSED):
        run.drop(one, attempt="train", pid=run.only("fault.injecting")["pid"])
    assert not [
        finding for finding in judged(run).findings if finding.expected == EXPECTED and finding.verdict != "pass"
    ]
