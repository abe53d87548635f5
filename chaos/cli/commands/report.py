"""``chaos report``: the page of a run with its trace, and the page of a directory of runs."""

from __future__ import annotations

from pathlib import Path

import click

from chaos.cli import completion
from chaos.cli.debug import debug_option
from chaos.cli.options import reports_option
from chaos.cli.paths import find_run, run_names, stored_runs
from chaos.cli.show import show_pages


@click.command("report", short_help="Make the page of a run, or of a directory of runs.")
@click.argument("runs", nargs=-1, metavar="[RUN|DIR]...", shell_complete=completion.runs)
@click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a trace as well.")
@click.option("--open", "open_browser", is_flag=True, help="Show the page in the browser.")
@reports_option
@debug_option
def command(runs: tuple[str, ...], trace: Path | None, open_browser: bool, reports: Path) -> int:
    """Make report.html of a run anew, or index.html of a directory of runs: files that open from disk in any browser.

    RUN is the directory of a run, or its name in the reports directory; by default the last run. Its page shows the
    verdict with the evidence of each statement, a timeline of all ranks, the phases of the recovery against their
    budgets, losses over those of the fault-free run, and the checkpoints. `chaos run` has made it already, unless with
    --no-report.

    DIR is a directory of runs. Its page shows the night at a glance: scenarios and verdicts, each linked to its run,
    and which faults were tried in which phase, and which never. Where there is a store of runs, trends.html is made as
    well, with the times over nights.

    --trace FILE writes the timeline of one run as trace events, which Perfetto (ui.perfetto.dev) and MindStudio Insight
    open: a process for each rank, an arrow from each fault to its detection.

    \b
    Examples:
      chaos report --open
      chaos report kill-rank-20261127-053852-68ba --trace kill-rank.trace.json
      chaos report reports
    """
    directories = [Path(text) for text in runs if _holds_runs(Path(text))]
    single = [find_run(text, reports) for text in (runs or ("latest",)) if Path(text) not in directories]
    if trace is not None and len(single) != 1:
        raise click.UsageError("--trace takes one run")
    return show_pages(
        lambda: [_make_page(run, trace) for run in single] + [_make_index(directory) for directory in directories],
        open_browser,
    )


def _holds_runs(path: Path) -> bool:
    """Return whether a path is a directory of runs, and not that of one run."""
    return path.is_dir() and not any((path / name).is_file() for name in ("run.json", "plan.json"))


def _make_page(run: Path, trace: Path | None) -> Path:
    from chaos.checks.judge import RunUnreadable, judge
    from chaos.report.analyze import result_of
    from chaos.report.page.data import page_of
    from chaos.report.page.write import write_page
    from chaos.report.trace import trace_of

    try:
        judgement = judge(run)
    except RunUnreadable as error:
        raise click.UsageError(str(error)) from error
    result = result_of(run, judgement)
    path = write_page(run, judgement, result)
    if trace is not None:
        trace.write_text(trace_of(page_of(run, judgement, result)), "utf-8")
    return path


def _make_index(directory: Path) -> Path:
    from chaos.base.registry import registry
    from chaos.report.index.render import write_index

    if not run_names(directory):
        raise click.UsageError(f"{directory} is neither a run nor a directory of runs")
    _make_trends(directory)
    return write_index(directory, sorted(registry("faults").points))


def _make_trends(directory: Path) -> None:
    """Write the page of times over nights where the directory has a store of runs; the index links it."""
    from chaos.trends.page.write import page_name, write_trends
    from chaos.trends.store import FILE

    if (directory / FILE).exists():
        try:
            write_trends(stored_runs(directory), directory, directory / page_name(None))
        except click.UsageError as error:
            click.echo(f"chaos: {page_name(None)} is not made: {error.message}", err=True)
