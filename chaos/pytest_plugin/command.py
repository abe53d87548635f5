"""The command that runs the cells of one test."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.pytest_plugin.options import inventory_of, reports_of

if TYPE_CHECKING:
    from chaos.scenario.load import Cell


def run_command(config: pytest.Config, scenario: Path, cells: Sequence[Cell], settings: Mapping[str, str]) -> list[str]:
    """Return the command that runs these cells of a scenario file."""
    command = ["run", str(scenario)]
    command += ["--json", "--reports", str(reports_of(config)), "--sdk", config.getoption("--chaos-sdk")]
    if (cores := cores_of()) is not None:
        command += ["--cores", str(cores)]
    if platform := config.getoption("--chaos-platform"):
        command += ["--platform", platform]
    if (inventory := inventory_of(config)) is not None:
        command += ["--inventory", str(inventory)]
    for name in config.getoption("--chaos-allow-checks"):
        command += ["--allow-checks", name]
    for words in config.getoption("--chaos-allow-hook"):
        command += ["--allow-hook", words]
    for cell in cells:
        command += ["--cell", cell.name] if cell.name else []
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    return with_parent(config, command)


def cores_of() -> int | None:
    """Return the cores of a job beside those of other workers; None for all that are free.

    The first of several jobs would take all cores, and the others would wait for it.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, len(os.sched_getaffinity(0)) // workers) if workers > 1 else None


def with_parent(config: pytest.Config, arguments: Sequence[str]) -> list[str]:
    """Return a command with these arguments that ends in order when this process does, even by SIGKILL."""
    from chaos.cli.with_parent import command_of, tied

    configured: list[str] = config.getini("chaos_command")
    return tied(os.getpid(), [*configured, *arguments]) if configured else command_of(os.getpid(), arguments)
