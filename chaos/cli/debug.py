"""The switch ``--debug``, on the group and on every command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import click

F = TypeVar("F")


@dataclass
class Settings:
    """Settings that hold for every command.

    ``kept`` names the place of its result, for a reader who could not be shown it. ``arguments`` is the whole command
    line after ``chaos``.
    """

    debug: bool = False
    kept: str = ""
    arguments: tuple[str, ...] = ()


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Settings).debug = True


def debug_option(command: F) -> F:
    """Add ``--debug`` to a command or group."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_set_debug,
        help="Print the traceback when the harness itself fails (also CHAOS_DEBUG=1).",
    )(command)  # type: ignore[type-var]
