"""``chaos cost``: what failures cost with each mechanism."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option, reports_option
from chaos.cli.paths import stored_runs
from chaos.cli.streams import OutputLost


@click.command("cost", short_help="Estimate what failures cost with each mechanism.")
@click.option("--ranks", type=click.IntRange(min=1), required=True, help="Cards of the cluster.")
@click.option("--mtbf-hours", type=click.FloatRange(0, min_open=True), help="Hours between two failures of one card.")
@click.option("--published", metavar="NAME", help="A published rate in its place: llama3.")
@click.option(
    "--checkpoint-interval",
    "interval",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Seconds between two periodic checkpoints. Default: none are saved.",
)
@click.option(
    "--save-time", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Seconds that one holds up training."
)
@click.option("--step", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Length of a training step.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N runs of each cell.")
@reports_option
@json_option
@debug_option
def command(
    ranks: int,
    mtbf_hours: float | None,
    published: str | None,
    interval: float | None,
    save_time: float,
    step: float | None,
    last: int | None,
    reports: Path,
    as_json: bool,
) -> int:
    """Estimate the share of effective training time (ETTR) of a cluster with each mechanism.

    The recoveries are measured: medians of the passing runs in the store. The rate of failures is yours, or a published
    one. The output says what is measured and what is assumed.

    \b
    Examples:
      chaos cost --ranks 1024 --mtbf-hours 40000
      chaos cost --ranks 16384 --published llama3 --checkpoint-interval 1800
    """
    from chaos.trends.cost import PUBLISHED, Cluster, Rate, cost_of
    from chaos.trends.series import series_of

    if (mtbf_hours is None) == (published is None):
        raise click.UsageError("give the rate of failures: --mtbf-hours of one card, or --published llama3")
    if published is not None and published not in PUBLISHED:
        raise click.UsageError(f"--published: there is no rate {published!r}; there are {', '.join(PUBLISHED)}")
    if interval is None and save_time:
        raise click.UsageError("--save-time: needs --checkpoint-interval")
    rate = PUBLISHED[published] if published is not None else Rate(mtbf_hours or 0.0, "given by --mtbf-hours")
    rows = stored_runs(reports)
    if last is not None:
        rows = tuple(row for series in series_of(rows) for row in series.rows[-last:])
    cost = cost_of(rows, Cluster(ranks, rate, interval, save_time, step))
    if as_json:
        echo_json(cost.to_json())
    elif not cost.mechanisms:
        click.echo(f"no mechanism acted in a passing run in {reports}: there is no recovery to count with")
    else:
        from rich.console import Console

        from chaos.trends.cost_text import print_cost

        # rich ends the process with 1 when nobody reads its output.
        with suppress(OutputLost, BrokenPipeError, SystemExit):
            print_cost(cost, Console())
    return codes.PASS if cost.mechanisms else codes.UNKNOWN
