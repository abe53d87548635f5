"""``chaos gate``: whether the newest runs got slower or worse than the runs before them."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option, reports_option
from chaos.cli.paths import stored_runs


def _window(_: click.Context, __: click.Parameter, text: str) -> int:
    match = re.fullmatch(r"last:(\d{1,6})", text)
    if match is None or int(match[1]) < 1:
        raise click.BadParameter(f"{text!r} is not last:N, for example last:30")
    return int(match[1])


def _share(_: click.Context, __: click.Parameter, text: str) -> float:
    match = re.fullmatch(r"(\d{1,4}(?:\.\d+)?)%", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a percentage, for example 20%")
    return float(match[1]) / 100


@click.command("gate", short_help="Fail when newer runs got slower or worse.")
@click.argument("scenario", required=False, shell_complete=completion.scenarios)
@click.option(
    "--against",
    default="last:30",
    show_default=True,
    metavar="last:N",
    callback=_window,
    help="How many runs of each cell, before the newest ones, are the norm.",
)
@click.option(
    "--newest",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="How many of the newest runs of each cell are judged.",
)
@click.option(
    "--max-slower",
    default="0%",
    show_default=True,
    metavar="SHARE",
    callback=_share,
    help="By how much a phase may get slower.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.002,
    show_default=True,
    help="Chance of a false alarm in one call.",
)
@click.option("--soak", is_flag=True, help="Count runs of soaks, too. Their times are those of a busy machine.")
@reports_option
@json_option
@debug_option
def command(
    scenario: str | None,
    against: int,
    newest: int,
    max_slower: float,
    alpha: float,
    soak: bool,
    reports: Path,
    as_json: bool,
) -> int:
    """Compare the newest runs of each cell with the runs before them, from the store of runs.

    A phase got slower when a one-sided Mann-Whitney test says that noise does not explain the newest times, at --alpha
    for all phases together (Holm), and when the slowdown is larger than 5% and than the noise of a single run, with 98%
    confidence; of more than 10 newest runs a part of that noise counts. The smallest slowdown that could have been
    found is printed. A verdict got worse when the newest is worse than the usual one. A cell is flaky when it passed
    and failed on one version. SCENARIO is the name of a scenario, or of one cell: kill-rank[victim=1].

    \b
    Examples:
      chaos gate --against last:30
      chaos gate kill-rank --max-slower 20% --json

    \b
    Exit codes: 0 nothing got worse, 1 something did,
    2 too few runs (it says how many are needed).
    """
    from chaos.trends.compared import Rules
    from chaos.trends.findable import findable
    from chaos.trends.gate import gate
    from chaos.trends.gate_text import sentences

    rows = stored_runs(reports, scenario)
    rules = Rules(against, newest, max_slower, alpha)
    result = gate(rows, rules, scenario, soak=soak)
    smallest = findable(rows, rules, scenario, soak=soak)
    if as_json:
        echo_json({**result.to_json(), "findable": [asdict(entry) for entry in smallest]})
    else:
        for sentence in sentences(result, smallest):
            click.echo(sentence)
    return codes.of_verdict(result.verdict)
