"""A thread that looks at runs without slowing them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

REST = 10
"""Ratio of the rest after a look to the time of the look, at least: the job needs the processors itself."""


def in_background(look: Callable[[], None]) -> threading.Thread:
    """Start a thread. An error of a view is none of the run: the thread ends, or is not started.

    It has the priority of the process. One of low priority would wait for a processor with the interpreter's lock, and
    on a busy machine the driver of the run with it.
    """

    def run() -> None:
        with contextlib.suppress(Exception):
            look()

    thread = threading.Thread(target=run, name="live view", daemon=True)
    with contextlib.suppress(RuntimeError):  # the user may have no more threads
        thread.start()
    return thread
