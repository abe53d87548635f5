"""The Python stacks of all threads of a rank, written when the harness asks for them by a signal.

``faulthandler`` writes them in its C handler, without the interpreter lock. So a rank answers that computes, waits in a
library or holds the lock. The harness sends the signal to no process that has not offered it.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import signal
import threading
from typing import Any

SIGNAL = int(signal.SIGRTMAX) - 2
"""A real-time signal: no library gives it a meaning, and its default would end a process, so it is sent on an offer."""


def file_name(rank: int, pid: int) -> str:
    """Return the name of the file into which a process of a rank writes its stacks."""
    return f"stacks-rank_{rank}-{pid}.txt"


def offer_stacks(directory: str | None, rank: int) -> dict[str, Any]:
    """Write the stacks into ``directory`` from now on when the signal comes; return the offer for the record.

    The offer has the signal, and the number of the main thread among the written ones. It is None where the signal has
    a meaning already, or the file cannot be made: a job must not fail for it.
    """
    if directory is None or signal.getsignal(SIGNAL) != signal.SIG_DFL:
        return {"stacks": None}
    path = os.path.join(directory, file_name(rank, os.getpid()))
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    except OSError:
        return {"stacks": None}
    faulthandler.register(SIGNAL, file=file, all_threads=True, chain=False)
    atexit.register(_leave_no_empty_file, path, os.getpid())
    return {"stacks": {"signal": SIGNAL, "main": threading.main_thread().ident}}


def _leave_no_empty_file(path: str, pid: int) -> None:
    with contextlib.suppress(OSError):  # it is gone, or cannot be removed: the harness looks for it as well
        if os.getpid() == pid and os.stat(path).st_size == 0:  # a forked process leaves it to the rank
            os.unlink(path)
