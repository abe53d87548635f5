"""The times of the optimizer's last update (``mindio_ttp.utils``), in microseconds; a loop of PyTorch sets them."""

from __future__ import annotations

_times = [0, 0]


def tft_set_update_start_time(time_us: int) -> None:
    """Note when the optimizer began to write."""
    _times[0] = time_us


def tft_set_update_end_time(time_us: int) -> None:
    """Note when the optimizer had written all of the step."""
    _times[1] = time_us


def tft_get_update_start_end_time() -> tuple[int, int]:
    """Return both times, 0 where there was no update."""
    return _times[0], _times[1]
