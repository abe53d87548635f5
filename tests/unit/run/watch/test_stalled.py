"""A wait in which nothing moves says what it is for, and until when."""

from __future__ import annotations

from chaos.run.watch.stalled import Stalled
from tests.unit.conftest import FakeClock


def after(stalled: Stalled, clock: FakeClock, seconds: float, state: int) -> str | None:
    clock.sleep(seconds)
    return stalled.look(state)


def test_what_is_waited_for_is_said_with_its_deadline_and_seldom() -> None:
    clock = FakeClock()
    stalled = Stalled("end", 300.0, clock, lambda: "ranks have not exited: 0 (step 5)")
    assert after(stalled, clock, 0.0, 1) is None
    assert after(stalled, clock, 9.0, 1) is None
    assert after(stalled, clock, 2.0, 1) == (
        "nothing has moved for 11 s; deadline end runs out in 289 s: ranks have not exited: 0 (step 5)"
    )
    assert after(stalled, clock, 5.0, 1) is None
    assert "for 21 s; deadline end runs out in 279 s" in str(after(stalled, clock, 5.0, 1))


def test_a_job_that_goes_on_is_told_of_by_its_events_alone() -> None:
    clock = FakeClock()
    stalled = Stalled("end", 300.0, clock, lambda: "nobody")
    assert [after(stalled, clock, 9.0, state) for state in range(20)] == [None] * 20
