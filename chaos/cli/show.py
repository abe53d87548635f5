"""Shows a result on the terminal, and the pages that a command has written."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes
from chaos.cli.streams import OutputLost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from chaos.report.compare import Comparison
    from chaos.report.result import Result

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


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


def show_pages(write: Callable[[], Iterable[Path]], open_browser: bool) -> int:
    """Write pages, print their paths, and open them with ``open_browser``; return the exit code."""
    import webbrowser

    try:
        pages = list(write())
    except OSError as error:
        place = f" to {Path(error.filename).parent}" if error.filename else ""
        hint = "; `chaos serve` shows it without writing" if error.errno in _READ_ONLY else ""
        click.echo(f"chaos: the page cannot be written{place}: {error.strerror}{hint}", err=True)
        return codes.HARNESS
    for page in pages:
        click.echo(str(page))
    if open_browser and not all(webbrowser.open(page.resolve().as_uri()) for page in pages):
        click.echo("chaos: no browser was found here; open the file by hand", err=True)
    return codes.PASS
