"""Notices that the harness itself was stopped: what it did not see or do meanwhile is not the job's fault."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.history.clock import Clock
from chaos.history.writer import HistoryWriteError, HistoryWriter

BEAT_SECONDS = 0.25
STOPPED_SECONDS = 3.0
"""A beat that comes so late was held up by more than a busy machine."""

EVENT = "harness.stopped"


class Heartbeat:
    """Looks at the clock again and again, and records when it was not able to for long: SIGSTOP, a frozen machine."""

    def __init__(self, history: HistoryWriter, attempt: str, clock: Clock) -> None:
        self._history = history
        self._attempt = attempt
        self._clock = clock
        self._last = clock.mono()

    def beat(self) -> None:
        """Note the time. ``since`` and ``until`` of the event are on the monotonic clock, in nanoseconds."""
        since, self._last = self._last, self._clock.mono()
        seconds = (self._last - since) / 1e9
        if seconds >= STOPPED_SECONDS:
            with contextlib.suppress(HistoryWriteError):  # whoever drives the run meets it too
                self._history.record(
                    EVENT, attempt=self._attempt, seconds=round(seconds, 3), since=since, until=self._last
                )


@contextmanager
def beating(history: HistoryWriter, attempt: str, clock: Clock) -> Iterator[None]:
    """Beat in a thread of its own while the block runs."""
    heart = Heartbeat(history, attempt, clock)
    over = threading.Event()

    def work() -> None:
        while not over.wait(BEAT_SECONDS):
            heart.beat()

    thread = threading.Thread(target=work, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        heart.beat()  # a stop that the block itself noticed first
