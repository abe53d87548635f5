"""The processes of a container as this host sees them; the engine must run here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.procfs import PROC, kernel_lines, read_text
from chaos.platforms.docker.engine import engine_errors

if TYPE_CHECKING:
    from docker.models.containers import Container


def first_process(container: Container) -> int:
    """Return the PID here of a container's first process.

    Raises PlatformError where its processes are not this host's.
    """
    with engine_errors(f"{container.name} has no process"):
        container.reload()
        pid = int(container.attrs["State"]["Pid"])
    try:
        groups = os.fsdecode((PROC / str(pid) / "cgroup").read_bytes())
    except OSError as error:
        raise PlatformError(f"{container.name}: its process {pid} is none of this host: {error}") from error
    if str(container.id) not in groups:
        raise PlatformError(f"{container.name}: process {pid} of this host is none of that container's")
    return pid


def process_here(container: Container, pid: int) -> int:
    """Return the PID here of the process that the container knows as ``pid``.

    Raises PlatformError when it has ended.
    """
    namespace = _namespace(first_process(container))
    for entry in PROC.iterdir():
        if entry.name.isdigit() and _namespace(int(entry.name)) == namespace and _own_pid(int(entry.name)) == pid:
            return int(entry.name)
    raise PlatformError(f"{container.name}: process {pid} of it has ended")


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(PROC / str(pid) / "ns" / "pid")  # noqa: PTH115 - the text is not a path
    except OSError:
        return None


def _own_pid(pid: int) -> int | None:
    """Return the PID that a process has in its own namespace (proc(5), NSpid)."""
    status = kernel_lines(read_text(pid, "status", PROC) or "")
    fields = next((line.split() for line in status if line.startswith("NSpid:")), [])
    return int(fields[-1]) if len(fields) > 1 else None
