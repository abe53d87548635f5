"""Ports that were leased for a job, but that another process has taken before the job could listen.

A lease keeps other harnesses of the host away, and no other program. The harness chose the port, so a taken port is
never held against the job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.procfs import command_line, environment


@dataclass(frozen=True)
class TakenPort:
    """A port on which processes listen, none of them the run's. A PID is missing where this user may not see it."""

    port: int
    pids: tuple[int, ...]

    def __str__(self) -> str:
        processes = [f"PID {pid} ({' '.join(command_line(pid)) or 'its command is not shown'})" for pid in self.pids]
        return f"{self.port} by {', '.join(processes) or 'a process that this user may not see'}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the history."""
        return {"port": self.port, "pids": list(self.pids)}


class PortTaken(RuntimeError):
    """The job could not start, and another process listens on ports that the harness had chosen for it."""

    def __init__(self, why: str, ports: Iterable[TakenPort]) -> None:
        self.ports = tuple(ports)
        listed = "; ".join(map(str, self.ports))
        super().__init__(f"another process took a port chosen for the job: {listed}. The job said: {why}")


def taken_by_others(ports: Iterable[int], token: str) -> list[TakenPort]:
    """Return the ports of ``ports`` on which processes listen, none of them with the run's ``token``."""
    import psutil  # of no use to a job that starts

    port_set = set(ports)
    listeners: dict[int, set[int | None]] = {}
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port in port_set:
            listeners.setdefault(connection.laddr.port, set()).add(connection.pid)
    return [
        TakenPort(port, tuple(sorted(pid for pid in pids if pid is not None)))
        for port, pids in sorted(listeners.items())
        if not any(pid is not None and (environment(pid) or {}).get(RUN_VARIABLE) == token for pid in pids)
    ]
