"""``chaos export``: the runs of the store for dashboards and for annotations of a change."""

from __future__ import annotations

from pathlib import Path

import click

from chaos.cli.debug import debug_option
from chaos.cli.options import reports_option
from chaos.cli.paths import stored_runs

FORMATS = ("openmetrics", "grafana", "github", "gitlab")


@click.command("export", short_help="Print runs for dashboards and annotations.")
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What to print.")
@reports_option
@debug_option
def command(form: str, reports: Path) -> None:
    """Print what the store of runs holds, in the form of another program.

    \b
    openmetrics  verdicts, times and budgets of the newest runs, for a scraper
    grafana      a dashboard that reads these metrics, to import
    github       workflow commands: failures at the line of the scenario
    gitlab       a code quality report: failures at the line of the scenario

    \b
    Examples:
      chaos export --format openmetrics > /var/lib/node_exporter/chaos.prom
      chaos export --format github
      chaos export --format gitlab > gl-code-quality-report.json
    """
    if form == "grafana":
        import chaos.trends

        click.echo((Path(chaos.trends.__file__).parent / "grafana.json").read_text("utf-8"), nl=False)
        return
    rows = stored_runs(reports)
    if form == "openmetrics":
        from chaos.trends.openmetrics import openmetrics

        click.echo(openmetrics(rows), nl=False)
    else:
        from chaos.trends.annotations import github, gitlab

        click.echo((github if form == "github" else gitlab)(rows, Path.cwd()), nl=False)
