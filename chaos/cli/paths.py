"""The directories in which scenarios and runs are looked for."""

from __future__ import annotations

import os
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.jobs.shipped import shipped_scenarios

if TYPE_CHECKING:
    from chaos.trends.row import RunRow

REPORTS = "reports"


def scenario_directories(start: Path) -> tuple[Path, ...]:
    """Return the directories in which a scenario is found by its name, in the order of the search.

    ``start``/scenarios comes first, or else the nearest parent's, then the scenarios that chaos comes with. Only
    existing directories are returned.
    """
    paths: list[Path] = []
    for directory in (start, *start.parents):
        if (directory / "scenarios").is_dir():
            paths.append(directory / "scenarios")
            break
    shipped = shipped_scenarios()
    if shipped is not None and shipped not in paths:
        paths.append(shipped)
    return tuple(paths)


def find_run(text: str, reports: Path) -> Path:
    """Return the directory of a run: a path, or a name in the reports directory.

    Raises click.UsageError, with the probable name, when there is no such run.
    """
    for directory in (Path(text), reports / text):
        if (directory / "run.json").is_file() or (directory / "plan.json").is_file():
            return directory.resolve()
    if Path(text).is_file():
        raise click.UsageError(f"{text} is a file: a run is a directory, or the name of one in {reports}")
    if (reports / text).is_dir() or Path(text).is_dir():
        raise click.UsageError(f"{text} is not the directory of a run: it holds neither run.json nor plan.json")
    names = run_names(reports)
    if not names:
        reason = f"there are no runs in {reports}" if reports.is_dir() else f"there is no directory {reports}"
        raise click.UsageError(f"no run {text!r}: {reason} (give another with --reports)")
    near = get_close_matches(text, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the last one is {names[-1]!r}"
    raise click.UsageError(f"no run {text!r} in {reports}; {hint}")


def make_reports(reports: Path) -> None:
    """Make the reports directory where there is none. Raises click.UsageError where no run can be written to it."""
    from chaos.store.directory import private_mode

    try:
        reports.mkdir(private_mode(), parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(
            f"--reports {reports}: the directory cannot be made: {error.strerror}; give another one"
        ) from error
    if not os.access(reports, os.W_OK | os.X_OK):
        raise click.UsageError(f"--reports {reports}: no run can be written there; give another directory")


def run_names(reports: Path) -> list[str]:
    """Return names of the runs in a reports directory, oldest first."""
    if not reports.is_dir():
        return []
    runs: list[tuple[int, str]] = []
    for path in sorted(reports.iterdir()):
        with suppress(OSError):  # another user's directory may not be looked into
            if not path.is_symlink() and (path / "run.json").is_file():
                runs.append(((path / "run.json").stat().st_mtime_ns, path.name))
    return [name for _, name in sorted(runs)]


def stored_runs(reports: Path, scenario: str | None = None, *, again: bool = False) -> tuple[RunRow, ...]:
    """Return the rows of all runs; repaired or omitted rows are reported on standard error.

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
    if again and runs.written:
        click.echo(f"{len(runs.rows)} runs are in the store; {runs.added} were added", err=True)
    if scenario is not None and not any(scenario in (row.scenario, row.name) for row in runs.rows):
        names = {row.scenario for row in runs.rows} | {row.name for row in runs.rows}
        near = get_close_matches(scenario, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f" in {reports} (give another directory with --reports)"
        raise click.UsageError(f"there is no run of {scenario!r}{hint}")
    return runs.rows
