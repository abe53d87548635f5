"""Whether a run's directory is where the run was made: the records of a copy are of another run, and are not undone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.base.clock import boot_id
from chaos.machine.job.processes import FoundProcess, find_run_processes
from chaos.machine.linux.process import alive
from chaos.machine.linux.procfs import PROC
from chaos.store.directory import DIRECTORY, INODE, RUN_FILE, RunDirectoryError, read_run
from chaos.store.host import other_host, this_host
from chaos.store.ownership import read_owner

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_SHOWN = 200
"""Characters of the original path that are shown."""


@dataclass(frozen=True)
class Relocation:
    """The reason not to heal a run by this directory.

    "copy": the original is there. "live": the original is gone, and its harness is alive. "unknown": neither is known.
    """

    means: Literal["copy", "live", "unknown"]
    why: str


def find_relocation(run_dir: Path) -> Relocation | None:
    """Return why the run must not be healed here; None where it may be.

    It may where it was made here, or was moved here and its harness has ended. A renamed directory is still the same
    directory, with the lock that its harness holds. A directory that was copied, and whose original was then removed,
    has a lock of its own, which no process holds.
    """
    try:
        described = read_run(run_dir)
    except RunDirectoryError:
        return None
    made = described.get(DIRECTORY)
    # A run of an older version does not record where it was made, and another host has other directories.
    if not isinstance(made, str) or not made.startswith("/") or other_host(described, this_host()) is not None:
        return None
    if described.get(INODE) == run_dir.stat().st_ino:
        return None
    original, shown = Path(made), made[:_SHOWN]
    try:
        if original.samefile(run_dir):
            return None
        if _is_that_run(original, described["token"]):
            return Relocation("copy", f"a copy: its processes and steps belong to {shown}; run `chaos heal {shown}`")
    except OSError as error:
        if error.errno not in _GONE:
            return Relocation("unknown", f"whether it is a copy of {shown} is unknown: {error.strerror}")
    except ValueError:
        pass  # not a path
    return _without_original(run_dir, shown, described["token"])


def _is_that_run(original: Path, token: str) -> bool:
    try:
        return bool(read_run(original)["token"] == token)
    except RunDirectoryError:
        return os.path.lexists(original / RUN_FILE)  # it exists, and cannot be read


def _without_original(run_dir: Path, original: str, token: str) -> Relocation | None:
    owner = read_owner(run_dir)
    if owner is not None and owner.pid != os.getpid() and alive(owner):
        return Relocation("live", f"it was made as {original}, which is gone, and its harness lives ({owner})")
    processes = find_run_processes(token)
    # An owner in another PID namespace, of a container, would not be found here.
    if processes and (owner is None or owner.boot != boot_id() or not _share_our_pids(processes)):
        listed = ", ".join(str(process.identity.pid) for process in processes[:5])
        why = f"it was made as {original}, which is not here, and processes of the run live ({listed}): whether its"
        return Relocation(
            "unknown", f"{why} harness lives is unknown. End the harness or these processes, then heal the run again"
        )
    return None


def _share_our_pids(processes: Iterable[FoundProcess]) -> bool:
    try:
        namespace = (PROC / "self/ns/pid").readlink()
        return all((PROC / str(process.identity.pid) / "ns/pid").readlink() == namespace for process in processes)
    except OSError:
        return False
