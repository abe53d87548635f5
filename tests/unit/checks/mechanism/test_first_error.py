"""A rank that ends by an error which no fault of the plan makes is never green, and the first error is named."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.mechanism.first_error import EXPECTED
from tests.kit.runs.good_run import GoodRun, good_run
from tests.kit.runs.repaired_run import uce_run
from tests.unit.checks.judging import Judge, not_passed, said

AFTER, BEFORE = 1, -1
LOST = {"error": "RuntimeError: a collective was ended", "base": "RuntimeError"}
OWN = {"error": "AttributeError: 'NoneType' object has no attribute 'shape'", "base": "AttributeError"}
HIDDEN = {**OWN, "first": "RuntimeError: a collective was ended", "first_base": "RuntimeError", "wrapped": False}
LIBRARY = {"error": "RpcError: gone", "base": "Exception"}
MASKED = {**LOST, "first": "KeyError: 'moments'", "first_base": "KeyError", "wrapped": False}


def with_error(
    run: GoodRun, error: dict[str, Any], when: int = AFTER, rank: int = 1, event: str = "error.uncaught"
) -> GoodRun:
    """A rank ends by this error, so many milliseconds after the fault was made."""
    act = run.only("fault.injecting")
    pid = run.only("rank.found", attempt="train", rank=rank)["pid"]
    times = {key: act[key] + when * 1_000_000 for key in ("mono", "wall")}
    place = {"attempt": "train", "rank": rank, "pid": pid}
    run.add(f"train-rank_{rank}", {**times, "event": event, **place, **error})
    return run


@pytest.mark.parametrize(
    "error",
    [
        LOST,
        {"error": "ConnectionResetError: [Errno 104]", "base": "ConnectionResetError"},
        {**LOST, "first": "CommunicationAborted: aborted", "first_base": "RuntimeError", "wrapped": True},
        {"error": "KeyboardInterrupt: ", "base": "KeyboardInterrupt", "first": "RuntimeError: a", "wrapped": False}
        | {"first_base": "RuntimeError"},
    ],
)
@pytest.mark.parametrize("event", ["error.uncaught", "error.reported"])
def test_what_a_survivor_raises_because_of_the_fault_passes(judged: Judge, error: dict[str, Any], event: str) -> None:
    named = {"state": 8, "name": "RS_UNKNOWN"} if event == "error.reported" else {}
    judgement = judged(with_error(good_run(), {**named, **error}, event=event))
    assert not_passed(judgement) == []
    assert said(judgement, "mechanism", "pass", EXPECTED)


@pytest.mark.parametrize(
    ("error", "verdict", "words"),
    [
        (OWN, "fail", "rank 1 ended by AttributeError: 'NoneType' object has no attribute 'shape'"),
        (HIDDEN, "fail", "has no attribute 'shape', behind which is RuntimeError: a collective was ended"),
        (MASKED, "unknown", "RuntimeError: a collective was ended, behind which is KeyError: 'moments'"),
        (LIBRARY, "unknown", "rank 1 ended by RpcError: gone"),
        (OWN | {"state": 8, "name": "RS_UNKNOWN"}, "fail", "rank 1 ended by AttributeError"),
    ],
)
def test_an_error_that_the_fault_did_not_make_is_not_green(
    judged: Judge, error: dict[str, Any], verdict: str, words: str
) -> None:
    event = "error.reported" if "state" in error else "error.uncaught"
    judgement = judged(with_error(good_run(), error, event=event))
    assert judgement.verdict == verdict
    assert said(judgement, "mechanism", verdict, words)


TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 7, in save\n'
FIRST = f"{TRACEBACK}{{}}\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACEBACK}{{}}\n"


def ended_by_log(text: str, *, code: int = 1, told: bool = False) -> GoodRun:
    """Rank 3 of a run whose plan ends the job: of its end only its log and its exit status tell."""
    run = good_run()
    run.others["logs/train/worker_3.log"] = f"epoch: 1 step: 1, loss is 2.3\n{text}".encode()
    run.only("rank.exit", attempt="train", rank=3)["code"] = code
    if not told:
        run.drop("handler.enter", name="exit", rank=3)
    return run


@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        (f"{TRACEBACK}{OWN['error']}\n", "fail", "rank 3 ended by AttributeError: 'NoneType' object"),
        (FIRST.format(LOST["error"], OWN["error"]), "fail", "behind which is RuntimeError: a collective was ended"),
        (FIRST.format(MASKED["first"], LOST["error"]), "unknown", "behind which is KeyError: 'moments'"),
        (f"{TRACEBACK}{LOST['error']}\n", "pass", EXPECTED),
    ],
)
def test_without_a_record_of_the_agent_the_traceback_in_the_log_tells(
    judged: Judge, text: str, verdict: str, words: str
) -> None:
    (finding,) = said(judged(ended_by_log(text)), "mechanism", verdict, words)
    assert "logs/train/worker_3.log" in finding.where


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        (f"{TRACEBACK}{OWN['error']}\n", 0, False),
        (f"{TRACEBACK}{OWN['error']}\n", 1, True),
        (f"{TRACEBACK}{LIBRARY['error']}\n", 1, False),
        (f"a user asked: {TRACEBACK}{OWN['error']}\n", 1, False),
        ("", 1, False),
    ],
)
def test_a_traceback_that_ended_nothing_says_nothing(judged: Judge, text: str, code: int, told: bool) -> None:
    findings = judged(ended_by_log(text, code=code, told=told)).findings
    assert [finding for finding in findings if finding.expected == EXPECTED] == []


def test_what_the_agent_has_recorded_is_not_taken_from_the_log(judged: Judge) -> None:
    run = with_error(ended_by_log(f"{TRACEBACK}{OWN['error']}\n"), LOST, rank=3)
    assert said(judged(run), "mechanism", "pass", f"{EXPECTED} | 1 errors")


def test_an_error_before_any_fault_fails(judged: Judge) -> None:
    assert said(judged(with_error(good_run(), LOST, BEFORE)), "mechanism", "fail", "before any fault was made")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ({"error": "ValueError: made by the fault", "base": "ValueError"}, "pass"),
        ({**LOST, "first": "RuntimeError: UCEError", "first_base": "RuntimeError", "wrapped": False}, "unknown"),
        ({**OWN, "first": "RuntimeError: UCEError", "first_base": "RuntimeError", "wrapped": False}, "fail"),
    ],
)
def test_of_the_rank_that_is_hit_a_second_error_in_a_handler_is_no_fault(
    judged: Judge, error: dict[str, Any], verdict: str
) -> None:
    judgement = judged(with_error(uce_run(), error, when=100, rank=1))
    assert said(judgement, "mechanism", verdict, EXPECTED)


def test_a_rank_that_reports_what_a_repair_is_for_has_not_ended(judged: Judge) -> None:
    judgement = judged(with_error(good_run(), OWN | {"state": 2, "name": "RS_UCE"}, event="error.reported"))
    assert not said(judgement, "mechanism", "fail", EXPECTED)


def test_a_failed_handler_names_the_error_behind_its_own(judged: Judge) -> None:
    run = good_run()
    end = run.only("handler.exit", name="save_ckpt", rank=0)
    end.update(ok=False, error="'NoneType'", first="OSError: [Errno 28] No space left on device")
    words = "handler save_ckpt failed on rank 0: 'NoneType', behind which is OSError: [Errno 28]"
    assert said(judged(run), "mechanism", "fail", words)
