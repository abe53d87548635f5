"""Waiting for conditions under deadlines that have names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import thread_time
from typing import TypeVar

from tenacity import RetryCallState, RetryError, Retrying, retry_if_result, wait_incrementing

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.growth import in_words

T = TypeVar("T")

_INTERVALS = wait_incrementing(start=0.010, increment=0.005, max=0.050)
"""Seconds between two looks: short at first, since most conditions hold soon."""

_REST = 4.0
"""Ratio of the rest after a look to the processor time of the look, at least.

A look at very many ranks takes long, and is seldom: they need the processors themselves.
"""


class DeadlineExpired(RuntimeError):
    """A deadline has passed. ``name`` and ``seconds`` are the deadline's, ``detail`` names the missing part.

    Not a TimeoutError, which is an OSError: a handler of failing system calls must not catch this error.
    """

    def __init__(self, name: str, seconds: float, detail: str = "") -> None:
        super().__init__(name, seconds, detail)
        self.name = name
        self.seconds = seconds
        self.detail = detail

    def __str__(self) -> str:
        return f"deadline {self.name!r} of {in_words(self.seconds)} has expired" + (
            f": {self.detail}" if self.detail else ""
        )


class Deadline:
    """A point in time after which waiting is over. It starts when it is made."""

    def __init__(self, name: str, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.name = name
        self.seconds = seconds
        self._clock = clock
        self._end = clock.mono() + int(seconds * 1e9)

    def remaining(self) -> float:
        """Return the seconds that are left; 0 when it has expired."""
        return max(0.0, (self._end - self._clock.mono()) / 1e9)

    @property
    def expired(self) -> bool:
        return self.remaining() == 0.0

    def check(self, detail: str = "") -> None:
        """Raise DeadlineExpired if it has expired."""
        if self.expired:
            raise DeadlineExpired(self.name, self.seconds, detail)


def wait_for(
    name: str,
    condition: Callable[[], T | None],
    *,
    seconds: float,
    clock: Clock = SYSTEM_CLOCK,
    sleep: Callable[[float], None] | None = None,
    detail: Callable[[], str] | str = "",
    within: Iterable[Deadline] = (),
) -> T:
    """Wait until ``condition`` returns something true, and return it.

    The condition is checked once more when the time is over. Then DeadlineExpired is raised for the deadline that
    expired first: this wait's own (``name``, ``seconds``) or one of ``within``. ``detail``, called only then, says what
    is missing. An error that the condition raises passes through at once. ``sleep`` defaults to the clock's. A check
    that takes much processor time is followed by a longer rest.
    """
    deadline = Deadline(name, seconds, clock)
    first = min([deadline, *within], key=Deadline.remaining)
    used = 0.0

    def look() -> T | None:
        nonlocal used
        began = thread_time()
        try:
            return condition()
        finally:
            used = thread_time() - began

    def pause(state: RetryCallState) -> float:
        return min(max(_INTERVALS(state), _REST * used), first.remaining())

    retrying = Retrying(
        retry=retry_if_result(lambda result: not result),
        stop=lambda _: first.expired,
        wait=pause,
        sleep=sleep or clock.sleep,
    )
    try:
        result = retrying(look)
    except RetryError as error:
        missing = detail() if callable(detail) else detail
        if first is not deadline:
            missing = f"while waiting for {name!r}" + (f": {missing}" if missing else "")
        raise DeadlineExpired(first.name, first.seconds, missing) from error
    assert result is not None
    return result


@dataclass(frozen=True)
class Patience:
    """The limits of its holder's waits: a wait with its deadlines already filled in."""

    seconds: float
    clock: Clock = SYSTEM_CLOCK
    within: tuple[Deadline, ...] = ()

    def __call__(self, name: str, condition: Callable[[], T | None], detail: Callable[[], str] | str = "", /) -> T:
        return wait_for(name, condition, seconds=self.seconds, clock=self.clock, detail=detail, within=self.within)
