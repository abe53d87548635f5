"""Ports of a run on which a process still listens after its teardown, and the listeners."""

from __future__ import annotations

import socket
from typing import Any

from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.procfs import command_line, environment

_SECONDS = 1.0


def left_of_port(port: int, token: str) -> int | dict[str, Any] | None:
    """Return the leftover of a port that was leased for the run with this token.

    None: nothing listens, or only processes of other runs. The number itself: a process of this run listens. Where the
    listener's run is not known, the port with the processes that were seen (``port``, ``listeners``): since the job
    gave the port up, the system may have lent the number to any process.
    """
    if not listens(port):
        return None
    import psutil  # of no use where nothing listens

    owners = [
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
    ]
    runs = {pid: (environment(pid) or {}).get(RUN_VARIABLE) for pid in owners if pid}
    if token in runs.values():
        return port
    unknown = [pid for pid, run in runs.items() if run is None]
    if runs and not unknown and None not in owners:
        return None
    return {"port": port, "listeners": [{"pid": pid, "cmdline": list(command_line(pid))} for pid in unknown]}


def listens(port: int) -> bool:
    """Return whether a process on this host's loopback accepts connections on the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(_SECONDS)
        return probe.connect_ex(("127.0.0.1", port)) == 0
