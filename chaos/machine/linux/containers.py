"""The container of this host that a process runs in, by the kernel's record.

Sources: cgroups(7), pid_namespaces(7), proc(5); the names that docker, containerd, CRI-O and podman give their cgroups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.linux.procfs import PROC, kernel_lines, read_text

_ID = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")
_SHOWN = 12
"""Digits of a container's id that its own tools show."""


@dataclass(frozen=True)
class Container:
    """Where a process is, as seen from another PID namespace.

    ``id`` is None where no runtime has named its cgroup. ``pid`` is the process's PID in the container.
    """

    id: str | None
    pid: int

    def __str__(self) -> str:
        return f"{self.id[:_SHOWN] if self.id else 'PID namespace'} (PID {self.pid} in it)"


def container_of(pid: int, proc_root: Path = PROC) -> Container | None:
    """Return the container of a process.

    None when the process is in this process's PID namespace and no runtime has named its cgroup. With several
    namespaces inside each other the PID is the innermost.
    """
    inside = _inner_pid(read_text(pid, "status", proc_root) or "")
    named = _ID.findall(read_text(pid, "cgroup", proc_root) or "")
    own_ids = _ID.findall(read_text("self", "cgroup", proc_root) or "")
    foreign = [name for name in named if name not in own_ids]
    if inside is None and not foreign:
        return None
    return Container(foreign[-1] if foreign else None, pid if inside is None else inside)


def _inner_pid(status: str) -> int | None:
    """Return the PID in the innermost namespace, None where there is only one."""
    for line in kernel_lines(status):
        if line.startswith("NSpid:"):
            pids = line.split()[1:]
            return int(pids[-1]) if len(pids) > 1 and pids[-1].isdecimal() else None
    return None
