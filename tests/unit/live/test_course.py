"""The stage of a run, and what the harness waits for, follow from the harness's own events."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.history.event import Event
from chaos.live.course import Course

SECOND = 1_000_000_000


def event(_event: str, second: float, attempt: str | None = None, **data: Any) -> Event:
    """An event of the harness; the wall clock is 1000 s ahead."""
    mono = int(second * SECOND)
    return Event(_event, mono, mono + 1_000 * SECOND, "harness", 0, attempt=attempt, data=data)


def course(*events: Event) -> Course:
    run = Course()
    for each in events:
        run.take(each)
    return run


START = event("run.start", 1, limit=600.0)
BASELINE = event("wait.begin", 2, name="baseline", goal="the fault-free run is there", seconds=500)
TRAIN = event("attempt.start", 3, "train")
WAIT = event("wait.begin", 4, "train", name="start", goal="every rank begins its first step", seconds=180.0)


@pytest.mark.parametrize(
    ("events", "stage"),
    [
        ((), "preparing"),
        ((START,), "preparing"),
        ((START, BASELINE), "baseline"),
        ((START, BASELINE, TRAIN), "train"),
        ((START, TRAIN, event("attempt.end", 9, "train")), "between"),
        ((START, TRAIN, event("attempt.start", 9, "resume")), "resume"),
        ((START, TRAIN, event("run.end", 9)), "judging"),
    ],
)
def test_the_stage_is_that_of_the_last_event(events: tuple[Event, ...], stage: str) -> None:
    run = course(*events)
    assert run.stage(None, alive=True) == run.stage(None, alive=None) == stage
    assert run.stage(None, alive=False) == "broken off"


def test_a_run_has_ended_with_its_verdict_and_a_fault_free_run_without_one() -> None:
    over = course(START, event("run.end", 9))
    assert over.stage("pass", alive=True) == over.stage("pass", alive=False) == "ended"
    assert over.stage(None, alive=False, judged=False) == "ended"
    assert over.stage(None, alive=True, judged=False) == "judging"
    assert course(START).stage(None, alive=False, judged=False) == "broken off"


def test_the_clock_of_a_run_stands_still_where_nothing_more_is_known() -> None:
    assert course(START, TRAIN).until(9_999.0, gone=False) == 9_999.0
    assert course(START, TRAIN).until(9_999.0, gone=True) == 1_003.0
    assert course(START, event("run.end", 9), event("run.healed", 99)).until(9_999.0, gone=True) == 1_009.0
    assert Course().until(9_999.0, gone=True) == 9_999.0


def test_what_is_waited_for_is_there_until_it_is_over() -> None:
    waiting = course(START, TRAIN, WAIT).waiting(1_010.0, lambda name: f"what {name} needs")
    assert waiting is not None
    assert (waiting.goal, waiting.elapsed, waiting.left) == ("every rank begins its first step", 6.0, 174.0)
    assert waiting.missing == "what start needs"
    for last in (event("attempt.end", 9, "train"), event("deadline.expired", 9), event("run.end", 9)):
        assert course(START, TRAIN, WAIT, last).waiting(1_010.0, str) is None
    assert course(START, WAIT, TRAIN).limit() == 600.0
    assert Course().limit() is None


def test_no_wait_has_longer_than_what_is_left_of_the_run() -> None:
    waiting = course(event("run.start", 1, limit=100.0), TRAIN, WAIT).waiting(1_010.0, str)
    assert waiting is not None
    assert (waiting.limit, waiting.left) == (97.0, 91.0)


def test_a_run_that_has_less_time_than_the_first_has_the_deadline_of_both() -> None:
    """A fault-free run, and a run that is made again with other ports, begin when a part of the time is over."""
    first = course(event("run.start", 1, limit=600.0), WAIT).waiting(1_010.0, str)
    again = course(event("run.start", 1, limit=20.5), WAIT)
    waiting = again.waiting(1_010.0, str)
    assert first is not None and waiting is not None
    assert (first.left, waiting.left, again.limit()) == (174.0, 11.5, 20.5)


def test_the_key_of_the_fault_free_run_that_is_waited_for_is_known() -> None:
    assert course(START).baseline_key == ""
    waiting = event("wait.begin", 2, name="baseline", goal="the fault-free run is there", seconds=500, key="0a")
    assert course(START, waiting).baseline_key == "0a"


def test_a_wait_without_a_limit_is_none() -> None:
    for seconds in (None, "180", True):
        odd = event("wait.begin", 4, "train", name="start", seconds=seconds)
        assert course(START, TRAIN, odd).waiting(1_010.0, str) is None
