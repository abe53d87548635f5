"""A row is judged by the verdict and by the reason, and the page is that of the kept rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planted.bugs import BUGS, SOUND
from tests.planted.catalogue import JOBS
from tests.planted.kept_rows import read_rows
from tests.planted.page import COMMAND, PAGE, page_of
from tests.planted.runs import deciding, judge


def result_of(verdict: str, check: str, seen: str) -> dict[str, Any]:
    """A result with a statement that decides its verdict, and one that does not."""
    statement = {"name": check, "verdict": verdict, "seen": seen, "expected": "what is right", "order": 0}
    other = {"name": "loss", "verdict": "pass", "seen": "all are", "expected": "finite", "order": None}
    return {"verdict": verdict, "headline": {"check": check, "text": seen}, "checks": [other, statement]}


MOMENTS = "4 of 8 parameters of rank 0 are not the file's: moments.0.weight"


@pytest.mark.parametrize(
    ("bug", "verdict", "check", "seen", "outcome"),
    [
        ("moments-lost", "fail", "resume", MOMENTS, "right"),
        ("moments-lost", "fail", "loss", MOMENTS, "wrong reason"),
        ("moments-lost", "fail", "resume", "rank 0 ended no step", "wrong reason"),
        ("moments-lost", "unknown", "history", MOMENTS, "unknown"),
        ("moments-lost", "pass", "resume", MOMENTS, "passed"),
        (SOUND, "pass", "resume", "", "right"),
        (SOUND, "fail", "resume", MOMENTS, "failed"),
        (SOUND, "unknown", "resume", MOMENTS, "failed"),
    ],
)
def test_a_row_is_right_by_verdict_and_reason(bug: str, verdict: str, check: str, seen: str, outcome: str) -> None:
    result = result_of(verdict, check, seen)
    assert judge(bug, result, deciding(result)) == outcome


def test_a_check_that_may_come_first_leaves_the_reason_to_another_one() -> None:
    result = {**result_of("fail", "resume", MOMENTS), "headline": {"check": "loss", "text": ""}}
    said = deciding(result)
    assert judge("moments-lost", result, said) == "wrong reason"
    assert judge("moments-lost", result, said, first="loss") == "right"


def test_every_row_is_kept_and_right() -> None:
    rows = read_rows()
    asked = {(job, bug) for job in JOBS for bug in (SOUND, *(bug.id for bug in BUGS))}
    assert asked == {key for key, row in rows.items() if row.is_right}, f"run {COMMAND}"


def test_the_page_is_that_of_the_kept_rows() -> None:
    assert page_of(read_rows()) == PAGE.read_text("utf-8"), f"run {COMMAND}"
