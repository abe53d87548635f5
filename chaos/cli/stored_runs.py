"""The runs of a reports directory for the commands that look at many of them."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chaos.trends.row import RunRow


def stored_runs(reports: Path, scenario: str | None = None, *, again: bool = False) -> tuple[RunRow, ...]:
    """Return the rows of all runs; what was repaired or left out is told on standard error.

    ``again`` reads every result.json anew. Raises click.UsageError where the store cannot be used, or no run is of
    ``scenario``.
    """
    from chaos.scenario.errors import printable
    from chaos.trends.runs import read_runs
    from chaos.trends.store import StoreUnusable

    try:
        runs = read_runs(reports, again=again)
    except StoreUnusable as error:
        raise click.UsageError(str(error)) from error
    for note in runs.notes:
        click.echo(f"chaos: {printable(note)}", err=True)
    if again:
        click.echo(f"{len(runs.rows)} runs are in the store; {runs.added} were added", err=True)
    if scenario is not None and not any(scenario in (row.scenario, row.name) for row in runs.rows):
        names = {row.scenario for row in runs.rows} | {row.name for row in runs.rows}
        near = get_close_matches(scenario, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f" in {reports} (give another directory with --reports)"
        raise click.UsageError(f"there is no run of {scenario!r}{hint}")
    return runs.rows
