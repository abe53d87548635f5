"""A moment of a recovery, and its error: the time of one event, or the first or last time of several hosts' events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.history.event import Event


@dataclass(frozen=True)
class Timestamp:
    """A moment, and the possible error of its time against another host's clock, as in an event.

    ``clock`` is None where it was picked from times of several clocks: then its error counts against every clock.
    ``by_log``: only a line of a log shows it.
    """

    mono: int
    where: str
    clock: str | None = ""
    error: int = 0
    by_log: bool = False

    @classmethod
    def of(cls, event: Event) -> Timestamp:
        """Return the moment of one event."""
        return cls(event.mono, event.source, event.clock, event.error)

    def uncertainty(self, other: Timestamp) -> int:
        """Return the nanoseconds by which the time between both may be wrong."""
        return 0 if self.clock is not None and self.clock == other.clock else self.error + other.error


def latest(moments: Iterable[Timestamp]) -> Timestamp:
    """Return the last of the moments, at least one.

    Clocks of several hosts may leave open which of them it is.
    """
    candidates = list(moments)
    last = max(candidates, key=lambda moment: moment.mono)
    surely = max(moment.mono - moment.error for moment in candidates)
    return _picked(last, [moment for moment in candidates if moment.mono + moment.error >= surely])


def earliest(moments: Iterable[Timestamp]) -> Timestamp:
    """Return the first of the moments, at least one."""
    candidates = list(moments)
    first = min(candidates, key=lambda moment: moment.mono)
    surely = min(moment.mono + moment.error for moment in candidates)
    return _picked(first, [moment for moment in candidates if moment.mono - moment.error <= surely])


def _picked(moment: Timestamp, candidates: list[Timestamp]) -> Timestamp:
    """Return the moment with the error of all its candidates: their least and greatest times bound it."""
    if len({other.clock for other in candidates}) == 1:
        return moment
    error = max(abs(other.mono - moment.mono) + other.error for other in candidates)
    return Timestamp(moment.mono, moment.where, None, error, moment.by_log)
