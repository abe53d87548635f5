"""A process that lacks all records of a kind, and has others that show them, has lost them: nobody is to blame."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checks.history.lost_records import EXPECTED
from tests.kit.runs.good_run import GoodRun, record
from tests.unit.checks.judging import Judge, said, verdicts

WRITTEN, NAMED = (f"/elsewhere/r1/job/checkpoints/step-3.{end}" for end in ("tmp", "ckpt"))


@pytest.mark.parametrize("attempt", ["train", "resume"])
@pytest.mark.parametrize(
    ("lost", "shown"),
    [
        ("step.begin", "recorded the end of step {}, and the beginning of no step"),
        ("step.end", "recorded the state after step {}, and the end of no step"),
    ],
)
def test_steps_of_one_process_that_are_lost_are_unknown(
    run: GoodRun, judged: Judge, lost: str, shown: str, attempt: str
) -> None:
    run.drop(lost, attempt=attempt, rank=1)
    judgement = judged(run)
    pid, step = (1001, 1) if attempt == "train" else (2001, 6)
    text = f"{EXPECTED} | rank 1's process {pid} {shown.format(step)}"
    assert said(judgement, "history", "unknown", text)
    assert judgement.verdict == "unknown"


def test_a_single_step_that_has_no_end_fails_as_before(run: GoodRun, judged: Judge) -> None:
    run.drop("step.end", attempt="resume", rank=1, step=8)
    judgement = judged(run)
    assert verdicts(judgement, "history") == {"pass"}
    assert said(judgement, "resume", "fail", "rank 1 began step 8 in attempt resume and did not end it")


def saved(run: GoodRun, *events: str) -> None:
    """Let rank 0 save under another name, with these of the records."""
    fields: dict[str, Any]
    for number, event in enumerate(events):
        fields = {"path": WRITTEN, "attempt": "train", "rank": 0, "pid": 1000}
        fields |= {"to": NAMED} if event == "checkpoint.renamed" else {"kind": "periodic", "step": 3}
        run.add("train-rank_0", record(10.26 + 0.01 * number, event, **fields))


def test_a_save_that_was_renamed_and_has_no_end_is_unknown(run: GoodRun, judged: Judge) -> None:
    saved(run, "checkpoint.begin", "checkpoint.renamed")
    assert said(judged(run), "history", "unknown", f"{EXPECTED} | rank 0 renamed {WRITTEN}, and recorded no end")


@pytest.mark.parametrize("events", [("begin",), ("begin", "end", "renamed"), ("renamed",)])
def test_a_save_that_is_whole_or_was_broken_off_is_not_doubted(
    run: GoodRun, judged: Judge, events: tuple[str, ...]
) -> None:
    saved(run, *(f"checkpoint.{event}" for event in events))
    assert verdicts(judged(run), "history") == {"pass"}
