"""``chaos trend``: the times of each phase over many nights."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option, reports_option
from chaos.cli.paths import stored_runs
from chaos.cli.show import show_pages
from chaos.cli.streams import OutputLost


@click.command("trend", short_help="Show times of each phase over many runs.")
@click.argument("scenario", required=False, shell_complete=completion.scenarios)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N runs of each cell.")
@click.option("--csv", "as_csv", is_flag=True, help="Print each time of each phase as a line of CSV.")
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Write the page with plots. FILE ends in .html; default: trends.html in the reports directory.",
)
@click.option("--open", "open_browser", is_flag=True, help="Show the page in the browser.")
@click.option("--rebuild", is_flag=True, help="Read every result.json anew first. Rows of pruned runs stay.")
@click.option("--soak", is_flag=True, help="Count runs of soaks, too. Their times are those of a busy machine.")
@reports_option
@json_option
@debug_option
def command(
    scenario: str | None,
    last: int | None,
    as_csv: bool,
    page: Path | None,
    open_browser: bool,
    rebuild: bool,
    soak: bool,
    reports: Path,
    as_json: bool,
) -> int:
    """Show median, 95th percentile and spread of each phase over the passing runs, from the store of runs.

    Change points are marked with what changed then: the harness, the job, MindSpore, SDK, platform, host. SCENARIO is
    the name of a scenario, or of one cell: kill-rank[victim=1].

    --page writes one HTML file that opens from disk: a plot for each phase, with change points, flips between pass and
    fail, and a link to the page of each run that still exists.

    \b
    Examples:
      chaos trend
      chaos trend kill-rank --last 60
      chaos trend kill-rank --page --open
      chaos trend --rebuild --reports /nightly/reports --csv > times.csv
    """
    if sum((as_csv, as_json, page is not None)) > 1:
        raise click.UsageError("--csv, --json and --page: give one of them")
    if open_browser and page is None:
        raise click.UsageError("--open: needs --page")
    if page is not None and page.name and page.suffix != ".html":
        raise click.UsageError(
            f"--page: {page} is no .html file; a scenario stands before it: chaos trend {page} --page"
        )
    rows = stored_runs(reports, scenario, again=rebuild)
    if page is not None:
        from chaos.trends.page.write import page_name, write_trends

        path = page if page.name else reports / page_name(scenario)
        return show_pages(lambda: [write_trends(rows, reports, path, scenario, last=last, soak=soak)], open_browser)
    from chaos.trends.trend import trends

    cell_trends = trends(rows, scenario, last=last, soak=soak)
    if as_json:
        echo_json({"schema_version": 1, "trends": [trend.to_json() for trend in cell_trends]})
        return codes.PASS
    from chaos.trends.trend_text import as_csv as csv_of
    from chaos.trends.trend_text import print_trends

    if as_csv:
        click.echo(csv_of(cell_trends), nl=False)
    elif not cell_trends:
        click.echo(f"there are no runs in {reports}")
    else:
        from rich.console import Console

        # rich ends the process with 1 when nobody reads its output.
        with suppress(OutputLost, BrokenPipeError, SystemExit):
            print_trends(cell_trends, Console())
    return codes.PASS
