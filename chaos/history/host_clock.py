"""Clocks of several hosts: how a clock is measured against the harness's, and how its times are placed there.

Each host has a monotonic clock of its own. The harness asks for its time again and again: the host looked at its clock
somewhere between question and answer, so the clocks' difference is known to half of the round trip (Cristian, 1989),
and the shortest trip is the most precise. Each measurement is an event ``clock`` of the harness's history; the raw
times stay as they were written.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chaos.base.clock import Clock

EVENT = "clock"

TRIPS = 16
"""Round trips of one measurement. The shortest counts, so a busy host costs precision only if all of them are slow."""

DRIFT_PPM = 500
"""The error of a monotonic clock's rate, in millionths: as far as NTP's frequency goes (MAXFREQ, Linux timex.h).

Slewing a step away may go faster for a while (chrony: maxslewrate, 83333 by default), so clocks are measured often.
"""


@dataclass(frozen=True)
class Offset:
    """The lead of a host's monotonic clock over the harness's, in nanoseconds, at ``at`` of the harness's clock.

    ``error`` is half of the round trip, the largest distance of the truth from ``offset``.
    """

    at: int
    offset: int
    error: int


def measure_offset(ask: Callable[[], int], clock: Clock, *, trips: int = TRIPS) -> Offset:
    """Return the best of several round trips.

    ``ask`` returns the host's CLOCK_MONOTONIC in nanoseconds, and may raise.
    """
    return min((_trip(ask, clock) for _ in range(trips)), key=lambda offset: offset.error)


def _trip(ask: Callable[[], int], clock: Clock) -> Offset:
    sent = clock.mono()
    reading = ask()
    received = clock.mono()
    middle = (sent + received) // 2
    return Offset(middle, reading - middle, (received - sent + 1) // 2)


def _in_order(measured: Iterable[Offset]) -> tuple[Offset, ...]:
    """Return measurements in order of time; of two so near that the host's clock seems to go back, the better one."""
    kept: list[Offset] = []
    for measurement in sorted(measured, key=lambda offset: offset.at):
        while (
            kept
            and measurement.at + measurement.offset <= kept[-1].at + kept[-1].offset
            and measurement.error < kept[-1].error
        ):
            kept.pop()
        if not kept or measurement.at + measurement.offset > kept[-1].at + kept[-1].offset:
            kept.append(measurement)
    return tuple(kept)


@dataclass(frozen=True)
class Placed:
    """A moment on the harness's clock, known to ``error`` nanoseconds."""

    mono: int
    error: int


class HostClock:
    """The monotonic clock of one boot of one host, by its measurements."""

    def __init__(self, measured: Iterable[Offset], *, same_boot: bool = False) -> None:
        """Keep the measurements; ``measured`` holds at least one.

        ``same_boot``: the host has the boot of the harness. Then both have the same clock and nothing is uncertain,
        unless a measurement contradicts it (a time namespace).
        """
        self.measured = _in_order(measured)
        self._times = [measurement.at + measurement.offset for measurement in self.measured]
        self.same = same_boot and all(abs(measurement.offset) <= measurement.error for measurement in self.measured)

    @property
    def error(self) -> int:
        """The largest error that a time between the measurements may have, in nanoseconds."""
        if self.same:
            return 0
        first, *others = self.measured
        return max(
            [first.error, *(self.place(measurement.at + measurement.offset - 1).error for measurement in others)]
        )

    def place(self, mono: int) -> Placed:
        """Return the place of a time of the host's clock on the harness's clock.

        Between two measurements the clock is taken to drift evenly, and may be wrong by the errors of both and by all
        that it has drifted. Outside of the measurements it may have drifted by ``DRIFT_PPM``.
        """
        if self.same:
            return Placed(mono, 0)
        number = bisect.bisect_right(self._times, mono)
        if number in (0, len(self.measured)):
            near = self.measured[max(0, number - 1)]
            far = abs(mono - (near.at + near.offset))
            # The time that has passed on a slow clock is less than the true time.
            drifted = -(-far * DRIFT_PPM // (1_000_000 - DRIFT_PPM))
            return Placed(mono - near.offset, near.error + drifted)
        left, right = self.measured[number - 1 : number + 1]
        length = (right.at + right.offset) - (left.at + left.offset)
        passed = mono - (left.at + left.offset)
        drift = right.offset - left.offset
        offset = left.offset + drift * passed // length
        return Placed(mono - offset, max(left.error, right.error) + abs(drift))
