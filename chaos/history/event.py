"""One event of the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """A fact, as one process recorded it.

    ``mono`` and ``wall`` are nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME. ``attempt`` names the launch of the
    job that it belongs to: ``baseline``, ``train`` or ``resume``. ``data`` holds the event's own fields. ``source`` is
    ``history/<file>:<line>``, the place to quote as evidence.

    ``clock`` names the clock that ``mono`` was read from: empty for the harness's own, ``host/boot`` for another
    host's. Such a time has been placed on the harness's clock, and may be wrong there by ``error`` nanoseconds.
    """

    event: str
    mono: int
    wall: int
    writer: str
    seq: int
    attempt: str | None = None
    rank: int | None = None
    pid: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    clock: str = ""
    error: int = 0

    def uncertainty(self, other: Event) -> int:
        """Return the nanoseconds by which the times of both may be wrong relative to each other: 0 on one clock."""
        return 0 if self.clock == other.clock else self.error + other.error

    def surely_before(self, other: Event) -> bool:
        """Return whether this event was earlier, however wrong the clocks may be."""
        return self.mono + self.uncertainty(other) < other.mono

    def maybe_before(self, other: Event) -> bool:
        """Return whether this event may have been earlier."""
        return self.mono < other.mono + self.uncertainty(other)
