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
