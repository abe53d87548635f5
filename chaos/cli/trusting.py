"""The operator's consent to each step that is not proved to be this user's: ``chaos heal RUN --trust``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.scenario.errors import printable

if TYPE_CHECKING:
    from chaos.heal.foreign_run import Act
    from chaos.heal.heal_report import HealReport


def chosen(run_dir: Path, steps: Sequence[str], inventory: Path | None, *, ask: bool) -> HealReport:
    """Do the named steps, or those that the operator confirms on a terminal.

    Raises click.UsageError for a name that no step has, and nothing is done then.
    """
    from chaos.heal.foreign_run import heal_trusted, look_at
    from chaos.store.directory import RunDirectoryError

    if steps:
        try:
            known = [act.id for act in look_at(run_dir, inventory=inventory).acts]
        except RunDirectoryError as error:
            raise click.UsageError(str(error)) from error
        if unknown := [name for name in steps if name not in known]:
            listed = ", ".join(map(printable, known)) or "none"
            raise click.UsageError(f"no step {', '.join(map(repr, unknown))} is open there; open are: {listed}")
        return heal_trusted(run_dir, lambda act: act.id in steps, inventory=inventory)
    on_terminal = ask and sys.stdin.isatty() and sys.stdout.isatty()
    return heal_trusted(run_dir, _confirmed if on_terminal else lambda act: False, inventory=inventory)


def _confirmed(act: Act) -> bool:
    click.echo(f"  {printable(act.what)}")
    return click.confirm(f"  do {printable(act.id)}?", default=False)
