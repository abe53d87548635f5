"""Limits of a process that another process may change (prlimit(2)): how many files it may open."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from chaos.machine.linux.process import ProcessIdentity, has_ended, state
from chaos.machine.linux.procfs import PROC


def open_files_limit(identity: ProcessIdentity) -> int:
    """Return the soft limit. Raises LookupError when that process has ended."""
    return _limits(identity)[0]


def set_open_files_limit(identity: ProcessIdentity, soft: int) -> None:
    """Change the soft limit of that very process; the hard limit stays. Raises LookupError, OSError, ValueError.

    The kernel takes a PID, which may belong to another process by then: that process gets its old limit back.
    """
    hard = _limits(identity)[1]
    try:
        before = resource.prlimit(identity.pid, resource.RLIMIT_NOFILE, (soft, hard))
    except ProcessLookupError as error:
        raise LookupError(f"{identity} has ended") from error
    if (now := state(identity)) == "gone":
        _take_back(identity.pid, (soft, hard), before)
    if has_ended(now):
        raise LookupError(f"{identity} has ended")


def highest_descriptor(pid: int, proc_root: Path = PROC) -> int:
    """Return the highest descriptor that is open. Raises OSError when the process has ended."""
    return max((int(name) for name in os.listdir(proc_root / str(pid) / "fd")), default=-1)  # noqa: PTH208


def _take_back(pid: int, changed: tuple[int, int], before: tuple[int, int]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if resource.prlimit(pid, resource.RLIMIT_NOFILE) == changed:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def _limits(identity: ProcessIdentity) -> tuple[int, int]:
    try:
        limits = resource.prlimit(identity.pid, resource.RLIMIT_NOFILE)
    except ProcessLookupError as error:
        raise LookupError(f"{identity} has ended") from error
    if has_ended(state(identity)):
        raise LookupError(f"{identity} has ended")
    return limits
