"""The measurements of a recovery. Facts only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """One phase. ``nanoseconds`` is None when one of its ends is not known; ``reason`` then says why.

    ``error``: it may be longer or shorter by so many nanoseconds, since its ends were seen on clocks of two hosts.
    ``begin`` is its beginning on the monotonic clock, in nanoseconds; it means nothing without a length. ``by_log``:
    only a line of a log shows its beginning or its end.
    """

    name: str
    nanoseconds: int | None
    reason: str = ""
    where: tuple[str, ...] = ()
    error: int = 0
    begin: int = 0
    by_log: bool = False

    @property
    def seconds(self) -> float | None:
        """Length in seconds."""
        return None if self.nanoseconds is None else self.nanoseconds / 1e9


@dataclass(frozen=True)
class Recovery:
    """The duration of the recovery. ``total`` is from the fault to the end of the last phase, in nanoseconds.

    ``mechanism`` is the mechanism that acted, by the evidence; None without a sign of any. ``error``, ``begin``
    and ``by_log`` describe the total, as those of a phase do.
    """

    mechanism: str | None
    phases: tuple[Phase, ...] = ()
    total: int | None = None
    reason: str = ""
    error: int = 0
    begin: int = 0
    by_log: bool = False

    @property
    def whole(self) -> tuple[Phase, ...]:
        """The whole of the recovery, in the form of a phase; none where it has no phases."""
        if not self.phases:
            return ()
        where = self.phases[-1].where
        return (Phase("total", self.total, self.reason, where, self.error, self.begin, self.by_log),)
