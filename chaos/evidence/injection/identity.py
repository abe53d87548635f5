"""The identity of the process that a fault has hit: by its start time, not its PID alone."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.history.event import Event


def identity_doubt(identified: Sequence[Event], act: Event) -> str | None:
    """Return why the process of ``act`` is not proven to be the one ``identified`` under its PID; None where it is.

    A PID is given again once its process has ended, so a record without a start time (clock ticks since the boot)
    names no process.
    """
    hit = _start_time(act)
    if hit is None:
        return "its start time is not recorded with the injection"
    known = [start_time for start_time in map(_start_time, identified) if start_time is not None]
    if not known:
        return "its start time is not recorded with the identification"
    return None if hit in known else "its start time differs"


def other_process(end: Event, known: Sequence[Event]) -> str | None:
    """Return why an exit status is not the ``known`` process's under its PID; None where nothing says so.

    An exit status without a start time is taken for its PID's: not every platform has the time.
    """
    began = _start_time(end)
    start_times = [start_time for start_time in map(_start_time, known) if start_time is not None]
    return "its start time differs" if began is not None and start_times and began not in start_times else None


def _start_time(event: Event) -> int | None:
    start_time = event.data.get("start_time")
    return start_time if isinstance(start_time, int) and not isinstance(start_time, bool) else None
