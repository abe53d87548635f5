"""Periodic checkpoints: the newest one at a step."""

from __future__ import annotations


def newest_saved(last: int, interval: int) -> int:
    """Return the step of the newest periodic checkpoint of a rank that has finished every step up to ``last``."""
    return last - last % interval


def last_saved_before(step: int, interval: int | None) -> int:
    """Return the step of the newest periodic checkpoint when ``step`` ends abnormally, 0 without a checkpoint.

    The step itself is not saved: its norm is checked before the save.
    """
    return 0 if interval is None else newest_saved(step - 1, interval)
