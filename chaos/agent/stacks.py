"""The Python stacks of all threads of a rank, written when the harness asks by a signal, or in a crash at the end.

``faulthandler`` writes them in its C handler, without the interpreter lock. So a rank answers that computes, waits in a
library or holds the lock. The harness sends the signal to no process that has not offered it.

MindSpore 2.10 can end a rank by SIGSEGV while it leaves its cluster (F-15), and no exit status tells this crash from
another. The stacks say which Python thread has crashed, if any. They are written from the end of the training on only,
so a fault that hits a training rank finds the handlers as the job has left them.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import signal
import threading
from dataclasses import dataclass
from typing import Any

SIGNAL = int(signal.SIGRTMAX) - 2
"""A real-time signal: no library gives it a meaning, and its default would end a process, so it is sent on an offer."""

CLUSTER_THREAD = b"RECV_EVENT_LOOP"
"""The name of the threads in which MindSpore 2.10 receives the messages of its cluster (``cluster/rpc/tcp``)."""


def file_name(rank: int, pid: int) -> str:
    """Return the name of the file into which a process of a rank writes its stacks."""
    return f"stacks-rank_{rank}-{pid}.txt"


@dataclass(frozen=True)
class Offer:
    """The stacks that a rank offers: ``fields`` are for the record, ``file`` is the open file, if there is one."""

    fields: dict[str, Any]
    file: int | None = None


def offer_stacks(directory: str | None, rank: int) -> Offer:
    """Write the stacks into ``directory`` from now on when the signal comes; return the offer.

    The offer has the signal, and the number of the main thread among the written ones. It is None where the signal has
    a meaning already, or the file cannot be made: a job must not fail for it.
    """
    if directory is None or signal.getsignal(SIGNAL) != signal.SIG_DFL:
        return Offer({"stacks": None})
    path = os.path.join(directory, file_name(rank, os.getpid()))
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    except OSError:
        return Offer({"stacks": None})
    faulthandler.register(SIGNAL, file=file, all_threads=True, chain=False)
    atexit.register(_leave_no_empty_file, path, os.getpid())
    return Offer({"stacks": {"signal": SIGNAL, "main": threading.main_thread().ident}}, file)


def write_in_crash(file: int | None, proc: str = "/proc/self") -> bool:
    """Write the stacks into ``file`` if the process crashes from now on; return whether they will be written.

    They are not outside a cluster of MindSpore, without a file, and where the job has enabled ``faulthandler`` or
    handles SIGSEGV itself, since the job's choice holds. An earlier handler of another fatal signal (MindSpore's
    datasets handle SIGBUS) is called as before: ``faulthandler`` puts it back and raises the signal again.
    """
    if file is None or faulthandler.is_enabled():
        return False
    try:
        if not _is_in_cluster(proc) or _is_caught(proc):
            return False
    except (OSError, ValueError):  # /proc cannot be read as expected
        return False
    faulthandler.enable(file=file, all_threads=True)
    # Where MindSpore was imported before the agent, the file would be gone when MindSpore leaves its cluster.
    atexit.unregister(_leave_no_empty_file)
    return True


def _is_in_cluster(proc: str) -> bool:
    for thread in os.listdir(os.path.join(proc, "task")):
        try:
            with open(os.path.join(proc, "task", thread, "comm"), "rb") as file:
                name = file.read(32).strip()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
        if name == CLUSTER_THREAD:
            return True
    return False


def _is_caught(proc: str) -> bool:
    """Return whether the process has a handler for SIGSEGV. Raises ValueError where that is not said."""
    with open(os.path.join(proc, "status"), "rb") as file:
        for line in file:
            if line.startswith(b"SigCgt:"):
                return bool(int(line.split(b":")[1], 16) >> (signal.SIGSEGV - 1) & 1)
    raise ValueError("no SigCgt")


def _leave_no_empty_file(path: str, pid: int) -> None:
    with contextlib.suppress(OSError):  # it is gone, or cannot be removed: the harness looks for it as well
        if os.getpid() == pid and os.stat(path).st_size == 0:  # a forked process leaves it to the rank
            os.unlink(path)
