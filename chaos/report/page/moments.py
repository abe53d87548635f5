"""Times of events as a page shows them, and events in words."""

from __future__ import annotations

import math
from typing import Any

from chaos.evidence.text import readable
from chaos.history.event import Event
from chaos.history.reader import History

_LONGEST = 240
_HIDDEN = frozenset({"argv", "token", "parameters", "start_time", "appended"})
"""Fields that say nothing to a reader, or are too long: the history has them."""


class Clock:
    """Seconds since the run's start, of times of the monotonic clock."""

    def __init__(self, history: History) -> None:
        start = history.first("run.start")
        self._zero = start.mono if start is not None else min((event.mono for event in history.events), default=0)

    def seconds(self, mono: int) -> float:
        """Return the seconds from the run's start to a time in nanoseconds, to the microsecond."""
        return round((mono - self._zero) / 1e9, 6)


def whole(value: object) -> int | None:
    """Return a whole number that a script can hold; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def finite(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return float(value) if math.isfinite(value) else None


def step_in(event: Event) -> int | None:
    """Return the event's step; None where it has none."""
    return whole(event.data.get("step"))


def in_words(event: Event, *, attempt: bool = False) -> str:
    """Return an event on one line: its name, its fields, and its place in the history; with its ``attempt`` on wish."""
    fields = [f"attempt {event.attempt}"] if attempt and event.attempt else []
    fields += [f"{name} {_short(value)}" for name, value in event.data.items() if name not in _HIDDEN]
    text = readable(f"{event.event}: {', '.join(fields)}" if fields else event.event)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return f"{text} ({event.source})" if event.source else text


def _short(value: Any) -> str:
    if isinstance(value, (list, dict)) and len(value) > 4:
        return f"{len(value)} entries"
    return str(value)
