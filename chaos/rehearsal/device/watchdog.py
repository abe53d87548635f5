"""MindSpore's watchdog of collective communication, as a thread of the device layer.

On Ascend it queries HCCL for asynchronous errors of every communicator each two seconds, and ends a collective that
would otherwise wait for HCCL_EXEC_TIMEOUT. Its lines are those of MindSpore 2.10.
"""

from __future__ import annotations

import os
import sys
import threading
from datetime import datetime
from typing import Callable

POLL_SECONDS = 2.0
GROUP = "hccl_world_group"


def start_watchdog(
    rank: int, poll_seconds: float, error: Callable[[], str | None], fail: Callable[[str], None]
) -> threading.Thread:
    """Ask ``error`` every ``poll_seconds`` until it names an error; log that error, and hand it to ``fail``, once."""
    thread = threading.Thread(
        target=_watch, args=(rank, poll_seconds, error, fail), name="HcclWatchdogThread", daemon=True
    )
    thread.start()
    return thread


def _watch(rank: int, poll_seconds: float, error: Callable[[], str | None], fail: Callable[[str], None]) -> None:
    pause = threading.Event()
    while not pause.wait(poll_seconds):
        text = error()
        if text is not None:
            _log(f"HcclWatchdogThread catch an error: {text}, rank id: {rank}, group name: {GROUP}")
            _log(f"Watchdog thread got hccl error, try to stop training. rank: {rank}")
            _log("Try to destroy all streams by watch dog thread.")
            fail(text)
            return


def _log(text: str) -> None:
    """Write a line as MindSpore's C++ does, behind its prefix."""
    now = datetime.now()
    time = f"{now:%Y-%m-%d-%H:%M:%S}.{now.microsecond // 1000:03}.{now.microsecond % 1000:03}"
    process = f"{os.getpid()},{threading.get_native_id():x},python"
    place = "[mindspore/ccsrc/distributed/collective/collective_manager.cc:1] HcclWatchdog]"
    print(f"[ERROR] DISTRIBUTED({process}):{time} {place} {text}", file=sys.stderr, flush=True)
