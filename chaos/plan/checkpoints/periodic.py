"""Periodic checkpoints: which of them is the newest at a step."""

from __future__ import annotations


def newest_saved(last: int, interval: int) -> int:
    """Return the step of the newest periodic checkpoint of a rank that has finished those up to step ``last``."""
    return last - last % interval


def last_saved_before(step: int, interval: int | None) -> int:
    """Step of the newest periodic checkpoint when ``step`` ends abnormally, 0 if there is none.

    The step itself is not saved: its norm is looked at before.
    """
    return 0 if interval is None else newest_saved(step - 1, interval)
