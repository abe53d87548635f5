"""The owner of a run's directory: the live harness holds a lock that the kernel releases when the harness ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from pathlib import Path

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.file_lock import FileLock, is_no_file
from chaos.base.plain_files import read_plain
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.history.jsonl import decode
from chaos.machine.linux.process import ProcessIdentity, alive, identify

LOCK_NAME = ".lock"
_SETTLE_SECONDS = 5.0
"""An observer holds the lock for a moment, and a process that a killed harness was starting for a little longer."""


class RunIsLive(RuntimeError):
    """Another process owns the run. ``owner`` is its own record of its identity, if it could be read."""

    def __init__(self, run_dir: Path, owner: ProcessIdentity | None) -> None:
        super().__init__(f"{run_dir}: is owned by a live harness ({owner or 'unknown process'})")
        self.run_dir = run_dir
        self.owner = owner


class RunLock:
    """The lock on one run's directory."""

    @staticmethod
    def acquire(run_dir: Path, *, clock: Clock = SYSTEM_CLOCK) -> FileLock:
        """Own the run until the lock is released or this process ends. Raises RunIsLive at once if its owner lives.

        A lock whose owner has ended is awaited, for a few seconds at most.
        """
        path = run_dir / LOCK_NAME

        def taken() -> FileLock | None:
            lock = FileLock.try_acquire(path)
            if lock is None and (owner := read_owner(run_dir)) is not None and alive(owner):
                raise RunIsLive(run_dir, owner)
            return lock

        try:
            lock = wait_for(f"lock of {run_dir.name}", taken, seconds=_SETTLE_SECONDS, clock=clock)
        except DeadlineExpired as error:
            raise RunIsLive(run_dir, read_owner(run_dir)) from error
        # The owner's identity only informs a reader. On a full or read-only disk the lock counts without it.
        with contextlib.suppress(OSError):
            process = identify(os.getpid())
            lock.write(json.dumps({"pid": process.pid, "start_time": process.start_time, "boot": process.boot}) + "\n")
        return lock


def is_live(run_dir: Path) -> bool:
    """Return whether a process owns the run now. A directory that was never locked has no owner."""
    if is_no_file(run_dir / LOCK_NAME):  # an attempt to lock it raises the reason
        return False
    try:
        # Without O_NONBLOCK a pipe in the lock's place would block for ever.
        descriptor = os.open(run_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link or a socket: an attempt to lock it raises the reason
            return False
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def read_owner(run_dir: Path) -> ProcessIdentity | None:
    """Return the last process that recorded itself as owner. ``is_live`` says whether it still owns the run."""
    try:
        record = decode(read_plain(run_dir / LOCK_NAME, 4096))
    except (OSError, ValueError):
        return None
    match record:
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot)}:
            return ProcessIdentity(pid, start_time, boot)
        case _:
            return None
