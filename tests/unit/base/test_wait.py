"""Waits end when their condition holds, and otherwise name the deadline that ended them."""

from __future__ import annotations

from time import thread_time

import pytest

from chaos.base.clock import Clock
from chaos.base.wait import Deadline, DeadlineExpired, Patience, wait_for


def seconds_of(clock: Clock, since: int) -> float:
    return round((clock.mono() - since) / 1e9, 3)


def test_a_condition_that_holds_is_not_waited_for(clock: Clock) -> None:
    began = clock.mono()
    assert wait_for("it", lambda: "yes", seconds=5, clock=clock) == "yes"
    assert seconds_of(clock, began) == 0


def test_it_looks_again_soon_and_then_every_50_ms(clock: Clock) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        clock.sleep(seconds)

    answers = iter([None, *[False] * 11, "", "yes"])
    assert wait_for("it", lambda: next(answers), seconds=60, clock=clock, sleep=sleep) == "yes"
    assert slept == [0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.05, 0.05, 0.05, 0.05]


def test_the_deadline_is_named_with_what_was_missing(clock: Clock) -> None:
    began = clock.mono()
    with pytest.raises(DeadlineExpired) as caught:
        wait_for("start", lambda: None, seconds=2.5, clock=clock, detail=lambda: "rank 3 has not begun")
    assert str(caught.value) == "deadline 'start' of 2.5 s has expired: rank 3 has not begun"
    assert (caught.value.name, caught.value.seconds, caught.value.detail) == ("start", 2.5, "rank 3 has not begun")
    assert seconds_of(clock, began) == 2.5


def test_the_condition_is_looked_at_once_more_when_the_time_is_over(clock: Clock) -> None:
    end = clock.mono() + 1_000_000_000
    assert wait_for("it", lambda: clock.mono() >= end, seconds=1.001, clock=clock)
    assert wait_for("it", lambda: True, seconds=0, clock=clock)


def test_the_deadline_that_expires_first_is_named(clock: Clock) -> None:
    run = Deadline("run", 3, clock)
    with pytest.raises(DeadlineExpired, match="deadline 'start' of 1 s has expired: no rank"):
        wait_for("start", lambda: None, seconds=1, clock=clock, within=[run], detail="no rank")
    with pytest.raises(DeadlineExpired, match="deadline 'run' of 3 s has expired: while waiting for 'end': no exit"):
        wait_for("end", lambda: None, seconds=100, clock=clock, within=[run], detail="no exit")
    assert run.expired
    with pytest.raises(DeadlineExpired, match=r"'run' of 3 s has expired: while waiting for 'more'$"):
        wait_for("more", lambda: None, seconds=100, clock=clock, within=[run])


def test_what_the_condition_raises_passes_through_at_once(clock: Clock) -> None:
    began = clock.mono()

    def condition() -> None:
        raise KeyError("broken")

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyError, match="broken"):
        wait_for("it", condition, seconds=5, clock=clock)
    with pytest.raises(KeyboardInterrupt):
        wait_for("it", interrupted, seconds=5, clock=clock)
    assert seconds_of(clock, began) == 0


def test_a_deadline_counts_down_and_can_be_checked(clock: Clock) -> None:
    deadline = Deadline("run", 10, clock)
    deadline.check()
    clock.sleep(4)
    assert round(deadline.remaining(), 3) == 6
    assert not deadline.expired
    clock.sleep(7)
    assert deadline.remaining() == 0
    with pytest.raises(DeadlineExpired, match="'run' of 10 s has expired: teardown"):
        deadline.check("teardown")


def test_patience_is_a_wait_with_its_deadlines_filled_in(clock: Clock) -> None:
    patience = Patience(7, clock, (Deadline("run", 3, clock),))
    assert patience("a core", lambda: 4) == 4
    with pytest.raises(DeadlineExpired, match="'run' of 3 s"):
        patience("a core", lambda: None)


def test_an_expired_deadline_is_not_taken_for_a_failing_system_call() -> None:
    assert not issubclass(DeadlineExpired, OSError)


def test_after_a_look_that_needs_much_of_a_processor_it_rests_longer(clock: Clock) -> None:
    """Else the harness of very many ranks would take the processors that they need themselves."""
    slept: list[float] = []
    used: list[float] = []

    def look() -> bool:
        began = thread_time()
        while thread_time() - began < 0.03:
            pass
        used.append(thread_time() - began)
        return len(used) > 2

    assert wait_for("it", look, seconds=60, clock=clock, sleep=slept.append)
    assert [rest >= 4 * seconds for rest, seconds in zip(slept, used, strict=False)] == [True, True]
