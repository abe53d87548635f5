"""Who has not shown who it is keeps nobody out: not by waiting, not by number, not by using up descriptors."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chaos.agent.unproven import Unproven, callers

SECONDS = 60.0


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    pairs = [socket.socketpair() for _ in range(4)]
    for _, other in pairs:
        other.settimeout(SECONDS)
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()


class ManualTimer:
    """A timer whose time is over when a test says so."""

    def __init__(self, seconds: float, function: Callable[..., object], arguments: list[Any]) -> None:
        self._function, self._arguments, self._cancelled = function, arguments, False

    def start(self) -> None:
        """Run from now on."""

    def cancel(self) -> None:
        """Never expire."""
        self._cancelled = True

    def expire(self) -> None:
        """Let the time be over."""
        if not self._cancelled:
            self._function(*self._arguments)


def cut_off(end: socket.socket) -> bool:
    """Whether the other side has ended the connection; it sends nothing otherwise."""
    end.setblocking(False)
    try:
        return end.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_of_too_many_is_cut_off(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    unproven = Unproven(most=2)
    for ours, _ in pairs:
        unproven.come(ours)
    assert [cut_off(theirs) for _, theirs in pairs] == [True, True, False, False]


def test_who_stays_too_long_is_cut_off(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    unproven = Unproven(seconds=0.2)
    unproven.come(pairs[0][0])
    assert pairs[0][1].recv(1) == b""  # waited for
    assert unproven.leave(pairs[0][0]) is False


def test_who_has_shown_who_it_is_is_not_cut_off_however_long_it_stays(
    pairs: list[tuple[socket.socket, socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[ManualTimer] = []

    def made(*given: Any) -> ManualTimer:
        timers.append(ManualTimer(*given))
        return timers[-1]

    monkeypatch.setattr(threading, "Timer", made)
    unproven = Unproven(most=2)
    for ours, _ in pairs[:3]:
        unproven.come(ours)
        assert unproven.leave(ours)
    unproven.come(pairs[3][0])
    for timer in timers:
        timer.expire()
    assert [cut_off(theirs) for _, theirs in pairs] == [False, False, False, True]


def test_who_shows_who_it_is_at_the_last_moment_is_not_cut_off(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    unproven = Unproven()
    ours, theirs = pairs[0]
    unproven.come(ours)
    assert unproven.leave(ours)
    unproven._cut_off(ours)  # as a limit does that ran out in the same moment
    assert not cut_off(theirs)
    assert not unproven.leave(ours)


def test_without_a_descriptor_for_the_next_the_oldest_makes_room(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    class Listener:
        """Two callers, no descriptor for a third, then there is; then it is shut down."""

        def accept(self) -> tuple[socket.socket, None]:
            answer = answers.pop(0)
            if isinstance(answer, OSError):
                raise answer
            return answer, None

    answers: list[Any] = [ours for ours, _ in pairs[:3]]
    answers.insert(2, OSError(errno.EMFILE, ""))
    answers.append(OSError(errno.EINVAL, ""))
    listener: Any = Listener()
    assert list(callers(listener, Unproven(), threading.Event())) == [ours for ours, _ in pairs[:3]]
    assert [cut_off(theirs) for _, theirs in pairs] == [True, False, False, False]
