"""Notices incidents outside the job: the harness was stopped or starved, the disk is full, the job was starved.

Nothing of this is the job's fault.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos.base.clock import Clock
from chaos.history.writer import HistoryWriteError, HistoryWriter
from chaos.run.watch.cpu_starvation import Waited, WaitingTimes
from chaos.run.watch.own_times import OwnTimes, Spent

LOOK_SECONDS = 0.25
STOPPED_SECONDS = 3.0
"""A look that comes this late needs an explanation: running and waiting counted by the kernel, or a stop."""

WAITED_LOOKS = 2
"""The waiting times are taken every so many looks: a file is read for every thread of the job."""

LOW_BYTES = 1 << 20
"""With less room than this on the disk of a run, a save or a log of the job may have failed by that alone."""


class HostIncidents:
    """Looks at the clock, at the disk and at the waiting times repeatedly.

    It records ``harness.stopped`` when it could not look for long and the kernel counted neither running nor waiting
    for a processor (SIGSTOP, a frozen machine), with ``since`` and ``until`` on the monotonic clock in nanoseconds;
    ``harness.starved`` where it did wait, with ``seconds`` of waiting; ``disk.low`` once when hardly any room is left;
    and ``job.starved``, with the same fields, while the machine keeps processes of the run waiting.
    """

    def __init__(
        self,
        history: HistoryWriter,
        attempt: str,
        clock: Clock,
        room: Callable[[], int | None],
        waited: Callable[[], Waited | None],
        spent: Callable[[], Spent] = Spent,
    ) -> None:
        """``room`` gives the free bytes where the run is recorded, None where they are not known.

        ``waited`` returns the longest wait since its last call, None where nothing waited, and ``spent`` the harness's
        own times. ``attempt`` is the launch under way, and may be set to the next one.
        """
        self.attempt = attempt
        self._history = history
        self._clock = clock
        self._room = room
        self._waited = waited
        self._spent = spent
        self._looks = 0
        self._last = clock.mono()
        self._low = False

    def look(self) -> None:
        """Look once, and record the incidents since the last look."""
        since, self._last = self._last, self._clock.mono()
        self._explain(since, self._spent())
        free = None if self._low else self._room()
        if free is not None and free < LOW_BYTES:
            self._low = True
            self._record("disk.low", free=free)
        self._looks += 1
        if self._looks % WAITED_LOOKS == 0 and (waited := self._waited()) is not None:
            self._record("job.starved", **asdict(waited))

    def _explain(self, since: int, spent: Spent) -> None:
        """Say why this look comes late, if it does.

        Time that the kernel counts neither as run nor as waited was a stop.
        """
        between = self._last - since
        waited = min(between, spent.waited + spent.stolen)
        explained = min(between, waited + spent.ran)
        rest = between - explained
        late = between >= STOPPED_SECONDS * 1e9
        span = {"since": since, "until": self._last}
        # In a stop of barely sufficient length, the uncounted rest is the larger part, without the sleep between looks.
        mostly = late and rest - LOOK_SECONDS * 1e9 > explained
        if mostly or max(rest, spent.suspended) >= STOPPED_SECONDS * 1e9:
            seconds = max(between, spent.suspended)
            self._record("harness.stopped", seconds=_rounded(seconds), **span, waited=_rounded(waited))
        elif late:
            self._record("harness.starved", seconds=_rounded(waited), **span, ran=_rounded(spent.ran))

    def _record(self, event: str, **data: Any) -> None:
        with contextlib.suppress(HistoryWriteError):  # the driver of the run meets it too
            self._history.record(event, attempt=self.attempt, **data)


def _rounded(nanoseconds: int) -> float:
    return round(nanoseconds / 1e9, 3)


@contextmanager
def noticing_incidents(
    history: HistoryWriter, attempt: str, clock: Clock, run_dir: Path, token: str
) -> Iterator[HostIncidents]:
    """Look in a thread of its own while the block runs: from the first launch to the end of the last, without a gap.

    ``token`` is the value of CHAOS_RUN in the run's processes.
    """

    def room() -> int | None:
        try:
            disk = os.statvfs(run_dir)
        except OSError:
            return None
        return disk.f_bavail * disk.f_frsize if disk.f_blocks else None

    incidents = HostIncidents(history, attempt, clock, room, WaitingTimes(token, clock.mono).look, OwnTimes().look)
    over = threading.Event()

    def work() -> None:
        while not over.wait(LOOK_SECONDS):
            incidents.look()

    thread = threading.Thread(target=work, name="host-incidents", daemon=True)
    thread.start()
    try:
        yield incidents
    finally:
        over.set()
        thread.join()
        incidents.look()  # a stop that the block itself noticed first
