"""Limits of a process that another may change (prlimit(2)): how many files it may open."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from chaos.platforms.process import ProcessIdentity, state
from chaos.platforms.procfs import PROC


def open_files_limit(identity: ProcessIdentity) -> int:
    """The soft limit. Raises LookupError when that process has ended."""
    return _limits(identity)[0]


def set_open_files_limit(identity: ProcessIdentity, soft: int) -> None:
    """Change the soft limit of that very process; the hard one stays. Raises LookupError, OSError, ValueError."""
    hard = _limits(identity)[1]
    resource.prlimit(identity.pid, resource.RLIMIT_NOFILE, (soft, hard))


def highest_descriptor(pid: int, proc_root: Path = PROC) -> int:
    """The highest descriptor that is open. Raises OSError when the process has ended."""
    return max((int(name) for name in os.listdir(proc_root / str(pid) / "fd")), default=-1)  # noqa: PTH208


def _limits(identity: ProcessIdentity) -> tuple[int, int]:
    try:
        found = resource.prlimit(identity.pid, resource.RLIMIT_NOFILE)
    except ProcessLookupError as error:
        raise LookupError(f"{identity} has ended") from error
    if state(identity) in ("gone", "zombie"):
        raise LookupError(f"{identity} has ended")
    return found
