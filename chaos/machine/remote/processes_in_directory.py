"""Processes that carry no run's identity and still have their place in a run's directory.

A process that a rank has started with an empty environment is known only to the process that has started the job, and
to none after that has been killed. Its working directory and its output are the only traces of its origin.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from chaos.machine.linux.procfs import PROC, all_pids, command_line

_SIGNS = (("cwd", "works in"), ("fd/1", "writes to"), ("fd/2", "writes to"))


def standing_in(place: str, *, proc_root: Path = PROC) -> Iterator[str]:
    """Yield the processes that work below ``place``, or have their output there, in words; also where it was removed.

    This process and its parents are left out.
    """
    below = f"{place.rstrip('/')}/"
    for pid in all_pids(proc_root):
        if pid in (os.getpid(), os.getppid()):
            continue
        for sign, does in _SIGNS:
            try:
                path = str((proc_root / str(pid) / sign).readlink())
            except OSError:  # ended meanwhile, a zombie, or another user's
                continue
            if f"{path}/".startswith(below):
                yield f"process {pid} ({' '.join(command_line(pid, proc_root))}) {does} {path}"
                break
