"""The table of a running job's processes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chaos.machine.running.running import JobProcess

_COMMAND = 60


def show_processes(processes: Sequence[JobProcess], *, to_errors: bool = False) -> None:
    """Print one line for each process: rank, PID, start time, role, command, container."""
    from chaos.evidence.text import readable
    from chaos.machine.linux.procfs import started_at

    rows = [("rank", "PID", "started", "role", "command", "container")]
    for process in processes:
        command = " ".join(readable(shlex.join(process.cmdline)).split())
        rows.append(
            (
                "" if process.rank is None else str(process.rank),
                str(process.pid),
                f"{started_at(process.identity.start_time):%Y-%m-%d %H:%M:%S}",
                process.role,
                command if len(command) <= _COMMAND else f"{command[: _COMMAND - 1]}…",
                "" if process.container is None else str(process.container),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(f"  {line.rstrip()}", err=to_errors)
