"""A thread that looks at runs never keeps the driver of a run waiting."""

from __future__ import annotations

import os
import threading

from chaos.live.thread import in_background


def test_the_thread_has_the_priority_of_the_process() -> None:
    """One of low priority waits for a processor with the interpreter's lock, and the driver of the run with it."""
    priorities: list[int] = []
    in_background(lambda: priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))).join()
    assert priorities == [os.getpriority(os.PRIO_PROCESS, threading.get_native_id())]
