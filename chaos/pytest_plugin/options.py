"""The plugin's options, and the values of them that several parts ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

UNUSED: pytest.StashKey[set[str]] = pytest.StashKey()
"""Names given with --chaos-set that no collected file has used yet."""


def add_options(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup("chaos", "chaos scenarios")
    group.addoption("--chaos-reports", metavar="DIR", help="Directory for the runs. Default: see chaos_reports.")
    group.addoption(
        "--chaos-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="Set a variable in every scenario that has it; repeat it for more.",
    )
    group.addoption(
        "--chaos-sdk",
        choices=("auto", "standin", "vendor"),
        default="auto",
        help="The vendor's mindio_ttp, the stand-in, or whichever the machine has. Default: %(default)s.",
    )
    group.addoption("--chaos-platform", metavar="NAME", help="Platform of the jobs, whatever the files say.")
    group.addoption("--chaos-inventory", metavar="FILE", help="The hosts of --chaos-platform ssh.")
    group.addoption(
        "--chaos-allow-checks", action="append", default=[], metavar="MODULE:FUNCTION", help="Allow a scenario's check."
    )
    group.addoption(
        "--chaos-allow-hook", action="append", default=[], metavar="COMMAND", help="Allow a command of its hooks."
    )
    parser.addini(
        "chaos_reports",
        "Directory for the runs, below that of pytest's configuration; without one, below the working directory.",
        default="reports",
    )
    parser.addini("chaos_command", "Command that runs chaos. Default: this Python with -m chaos.", type="args")


def check_options(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    config.stash[UNUSED] = set(settings_of(config))
    if config.getoption("--chaos-inventory"):
        from chaos.platforms.kind import with_inventory

        names = with_inventory()
        if config.getoption("--chaos-platform") not in names:
            raise pytest.UsageError(f"--chaos-inventory: is for --chaos-platform {' or '.join(names)}")


def settings_of(config: pytest.Config) -> dict[str, str]:
    """Return the variables in the command line. Raises UsageError for one without a value."""
    settings: dict[str, str] = {}
    for text in config.getoption("--chaos-set"):
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise pytest.UsageError(f"--chaos-set {text!r} is not name=value")
        settings[name] = value
    return settings


def inventory_of(config: pytest.Config) -> Path | None:
    """Return the inventory in the command line, relative to pytest's working directory."""
    path = config.getoption("--chaos-inventory")
    return config.invocation_params.dir / path if path else None


def reports_of(config: pytest.Config) -> Path:
    """Return the directory for the runs: one for all calls in a project, from whatever directory and for whatever file.

    Without a configuration pytest's root directory depends on the files of the call, so it is not used then.
    """
    if path := config.getoption("--chaos-reports"):
        return config.invocation_params.dir / str(path)
    base = config.invocation_params.dir if config.inipath is None else config.inipath.parent
    return base / str(config.getini("chaos_reports"))
