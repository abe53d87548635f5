"""Local times of log lines, as nanoseconds since the epoch."""

from __future__ import annotations

from datetime import datetime, tzinfo


class WallTime:
    """Converts the times of one log.

    Log lines carry local time without a zone. ``tz`` is the zone of the machine that wrote them; None is the zone of
    this machine. The hour that occurs twice when daylight saving ends is taken as the first.
    """

    def __init__(self, tz: tzinfo | None = None) -> None:
        self._tz = tz
        self._second = ""
        self._epoch: int | None = None

    def ns(self, date: str, time: str, microseconds: int) -> int | None:
        """Return the nanoseconds of a local time; None if there is no such moment.

        ``date`` is ``2026-11-21``, ``time`` is ``01:32:19``.
        """
        second = f"{date} {time}"
        if second != self._second:  # lines of one second come together, and parsing is slow
            self._second, self._epoch = second, self._parse(second)
        return None if self._epoch is None else self._epoch * 1_000_000_000 + microseconds * 1000

    def _parse(self, second: str) -> int | None:
        try:
            return int(datetime.strptime(second, "%Y-%m-%d %H:%M:%S").replace(tzinfo=self._tz).timestamp())
        except (ValueError, OverflowError, OSError):
            return None
