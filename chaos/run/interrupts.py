"""Signals that ask a run to end: when they take effect, and when they have to wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and a closed terminal (SIGHUP) end the run as Ctrl-C does: in order, with everything put back.

    Signals that this process was started to ignore stay ignored: under ``nohup`` a run outlives its terminal.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with _handled_by(interrupt, (signal.SIGTERM, signal.SIGHUP)):
        yield


@contextmanager
def interruptible_once() -> Iterator[None]:
    """Heed the first such signal and none after it: a second one could cut off the putting back."""
    signalled = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal signalled
        if not signalled:
            signalled = True
            raise KeyboardInterrupt(signal.Signals(number).name)

    with _handled_by(interrupt, _NUMBERS):
        yield


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold such signals back until the end of the block, and heed them then: none is lost."""
    held: list[int] = []
    try:
        with _handled_by(lambda number, frame: held.append(number), _NUMBERS):
            yield
    finally:
        if held:
            signal.raise_signal(held[0])


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], numbers: tuple[signal.Signals, ...]
) -> Iterator[None]:
    """Handle the signals that are not ignored. Threads other than the main one cannot, and need not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, handler) for number in numbers if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
