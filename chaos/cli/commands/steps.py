"""``chaos steps``: the file with which a training loop of one's own reports its steps."""

from __future__ import annotations

from pathlib import Path

import click

import chaos.agent
from chaos.cli.debug import debug_option

_FILE = Path(chaos.agent.__file__).parent / "site" / "chaos_steps.py"


@click.command("steps", short_help="Print chaos_steps.py, for a training loop of your own.")
@debug_option
def command() -> int:
    """Print the file chaos_steps.py, which a script with a training loop of its own imports.

    \b
    Put it beside the script. It works without chaos too, and its head
    shows the lines of a loop:
      chaos steps > chaos_steps.py
    """
    click.echo(_FILE.read_text(encoding="utf-8"), nl=False)
    return 0
