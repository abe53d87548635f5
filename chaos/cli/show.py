"""Shows a result on the terminal."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from chaos.cli.streams import OutputLost

if TYPE_CHECKING:
    from pathlib import Path

    from chaos.report.compare import Comparison
    from chaos.report.result import Result


def show(result: Result, run_dir: Path, *, everything: bool = False) -> None:
    """Print a result on standard output: what matters first, or ``everything``.

    A reader that has gone ends nothing: the other cells are run all the same.
    """
    from rich.console import Console

    from chaos.report.terminal import print_all, print_short

    # rich ends the process with 1, which would read as a verdict, when nobody reads its output.
    with suppress(OutputLost, BrokenPipeError, SystemExit):
        (print_all if everything else print_short)(result, Console(), run_dir)


def show_interrupted(result: Result, run_dir: Path) -> None:
    """Print the outcome of an interrupted run in a line; its result would be unknown."""
    import click

    with suppress(OutputLost, BrokenPipeError):
        click.echo(f"{result.scenario}: {result.reason}")
        click.echo(f"every statement about it: chaos analyze {run_dir} --all")


def show_comparison(comparison: Comparison) -> None:
    """Print two runs side by side on standard output, as :func:`show` does."""
    from rich.console import Console

    from chaos.report.side_by_side import print_comparison

    with suppress(OutputLost, BrokenPipeError, SystemExit):
        print_comparison(comparison, Console())
