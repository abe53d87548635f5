"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from chaos.cli import completion
from chaos.cli.completion import Complete
from chaos.cli.paths import REPORTS

_Command = TypeVar("_Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")

all_option = click.option(
    "--all", "everything", is_flag=True, help="Show every statement and every figure, not only what broke first."
)

reports_option = click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    default=REPORTS,
    show_default=True,
    help="Directory that holds one directory for each run.",
)

JOB_HELP = (
    "The directory that the job logs in (msrun's --log_dir, torchrun's --log-dir) or works in, or the PID of one of "
    "its processes."
)

job_option = click.option("--job", "name", metavar="DIR|PID", required=True, help=JOB_HELP)

cell_option = click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.cells,
    help="Only this matrix cell; repeat it for more.",
)


def _settings(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not name=value, for example --set victim=2")
        settings[name] = text
    return settings


def settings_option(about: str, shell_complete: Complete | None = None) -> Callable[[_Command], _Command]:
    """Return the option ``--set NAME=VALUE``, which may be repeated; ``shell_complete`` offers its names."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        shell_complete=shell_complete,
        help=f"{about}; repeat it for more.",
    )


set_option = settings_option("Give a variable of the scenario another value", shell_complete=completion.variables)


allow_checks_option = click.option(
    "--allow-checks",
    "allow_checks",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Run this check of the scenario's own, which is Python code beside it; repeat it for more.",
)
allow_hook_option = click.option(
    "--allow-hook",
    "allow_hooks",
    multiple=True,
    metavar="COMMAND",
    help="Run this command of the scenario's hooks, exactly with these arguments; repeat it for more.",
)

inventory_option = click.option(
    "--inventory",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Hosts for the platform ssh. A scenario without a number of nodes is spread over all of them.",
)
platform_option = click.option(
    "--platform",
    metavar="NAME",
    shell_complete=completion.platforms,
    help="Platform of the job, whatever the file says: local, or another platform that is registered.",
)


sdk_option = click.option(
    "--sdk",
    type=click.Choice(["auto", "standin", "vendor"]),
    default="auto",
    show_default=True,
    help="The vendor's mindio_ttp, the stand-in, or whichever the machine has.",
)


def echo_json(value: Any) -> None:
    """Print a value as indented JSON, in ASCII where the stream cannot show every character.

    No stream can show a byte of a path that is no character: JSON has an escape of its own for it.
    """
    import json
    import sys
    from contextlib import suppress

    from chaos.cli.encoding import takes_everything

    text = json.dumps(value, indent=2)
    if takes_everything(sys.stdout):
        plain = json.dumps(value, indent=2, ensure_ascii=False)
        with suppress(UnicodeEncodeError):
            plain.encode()
            text = plain
    click.echo(text)
