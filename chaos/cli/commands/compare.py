"""``chaos compare``: two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option, reports_option
from chaos.cli.paths import find_run


def _shares(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, float] | None:
    if not values:
        return None
    from chaos.scenario.models.terms import MEASURES

    shares: dict[str, float] = {}
    for value in values:
        name, _equals, text = value.rpartition("=")
        try:
            shares[name] = share = float(text)
        except ValueError:
            raise click.BadParameter(f"{value!r} is not measure=share, for example detection=0.5") from None
        if name not in MEASURES:
            raise click.BadParameter(f"there is no measure {name!r}; there are {', '.join(sorted(MEASURES))}")
        if not 0 < share <= 1:
            raise click.BadParameter(f"the share of {name} must be above 0 and at most 1, not {text}")
    return shares


@click.command("compare", short_help="Compare two runs phase by phase.")
@click.argument("first", metavar="FIRST", shell_complete=completion.runs)
@click.argument("second", metavar="SECOND", shell_complete=completion.runs)
@click.option(
    "--at-most",
    multiple=True,
    metavar="MEASURE=SHARE",
    callback=_shares,
    help="Largest share of the first run's measure. Default: what the scenario's compare says.",
)
@reports_option
@json_option
@debug_option
def command(first: str, second: str, at_most: dict[str, float] | None, reports: Path, as_json: bool) -> int:
    """Print the phases of two runs' recoveries beside each other, and judge whether those shrank that should.

    Both runs are judged again from their files. A run is a directory, or a name in the reports directory; the first is
    the one without the option. Where nothing says what must shrink the verdict is unknown.

    \b
    Examples:
      chaos compare memory-store-1 memory-store-2
      chaos compare memory-store-1 memory-store-2 --at-most load=0.5 --json
    """
    from chaos.checks.judge import RunUnreadable
    from chaos.report.analyze import analyze
    from chaos.report.compare import compare

    try:
        results = [analyze(find_run(run, reports), write=False) for run in (first, second)]
    except RunUnreadable as error:
        raise click.UsageError(str(error)) from error
    comparison = compare(results[0], results[1], at_most)
    if as_json:
        echo_json(comparison.to_json())
    else:
        from chaos.cli.show import show_comparison

        show_comparison(comparison)
    return codes.of_verdict(comparison.verdict)
