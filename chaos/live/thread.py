"""A thread that looks at runs, and never gets in the way of what it looks at."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

_NICE = 10

REST = 10
"""Ratio of the rest after a look to the time of the look, at least: the job needs the processors itself."""


def in_background(look: Callable[[], None]) -> threading.Thread:
    """Start a thread of low priority. An error of a view is none of the run: the thread ends, or is not started."""

    def run() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        with contextlib.suppress(Exception):
            look()

    thread = threading.Thread(target=run, name="live view", daemon=True)
    with contextlib.suppress(RuntimeError):  # the user may have no more threads
        thread.start()
    return thread
