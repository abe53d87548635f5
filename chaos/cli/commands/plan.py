"""``chaos plan``: the expected course, worked out before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import click

from chaos.cli import completion
from chaos.cli.debug import debug_option
from chaos.cli.options import cell_option, echo_json, inventory_option, json_option, platform_option, set_option
from chaos.cli.scenarios import load, pick_cells


@click.command("plan", short_help="Print what should happen. Starts nothing.")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...", shell_complete=completion.scenarios)
@set_option
@platform_option
@inventory_option
@cell_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed for random targets that have none of their own.")
@json_option
@debug_option
def command(
    scenarios: tuple[str, ...],
    settings: dict[str, str],
    platform: str | None,
    inventory: Path | None,
    cells: tuple[str, ...],
    seed: int | None,
    as_json: bool,
) -> int:
    """Print what should happen: mechanism, checkpoint, resume, budgets. Starts nothing.

    SCENARIO is a file, a pipe, - for standard input, or a name in scenarios/.

    \b
    Examples:
      chaos plan kill-rank.yaml
      chaos plan kill-rank-phases.yaml --cell phase=forward --json
    """
    from chaos.cli.own_code import own_code_rows
    from chaos.plan.io import dumps
    from chaos.plan.render import render
    from chaos.run.prepare.prepare import plan_cell

    loaded = [load(text, settings, platform, inventory) for text in scenarios]
    chosen = pick_cells(loaded, cells)
    plans = [plan_cell(scenario, cell, seed) for scenario, cell in chosen]
    if as_json:
        echo_json({"schema_version": 1, "plans": [json.loads(dumps(plan)) for plan in plans]})
    else:
        shown = [
            "\n".join([render(plan).rstrip("\n"), *own_code_rows(cell.scenario)])
            for plan, (_, cell) in zip(plans, chosen, strict=True)
        ]
        click.echo("\n\n".join(shown))
    return 0
