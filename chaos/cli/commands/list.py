"""``chaos list``: the existing scenarios."""

from __future__ import annotations

from pathlib import Path

import click

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option
from chaos.cli.paths import scenario_directories
from chaos.cli.scenarios import named_files
from chaos.run.prepare.prepare import known_names
from chaos.scenario.errors import ScenarioError
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import load_scenario


@click.command("list", short_help="List scenarios with their tags and cells.")
@click.argument("paths", nargs=-1, metavar="[SCENARIO]...")
@json_option
@debug_option
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """List scenarios with their tags, cells and descriptions.

    SCENARIO is a file, a directory, or a name in scenarios/. Without one: the directories in which `chaos run` looks
    for names. Ends with 64 when a file is broken.

    \b
    Examples:
      chaos list
      chaos list scenarios/ --json
    """
    names = known_names()
    rows: list[dict[str, object]] = []
    broken = False
    for path in named_files(paths) if paths else iter_scenarios(scenario_directories(Path.cwd())):
        try:
            loaded = load_scenario(path, settings={}, names=names)
        except ScenarioError as error:
            broken = True
            click.echo(str(error), err=True)
            continue
        first = loaded.cells[0].scenario
        rows.append(
            {
                "file": str(path),
                "name": first.name,
                "tags": list(first.tags),
                "cells": [cell.name for cell in loaded.cells],
                "finding": None if first.known is None else first.known.id,
                "description": first.description.strip(),
            }
        )
    if as_json:
        echo_json({"schema_version": 1, "scenarios": rows})
    else:
        for row in rows:
            _print(row)
        if not rows:
            click.echo("no scenarios", err=True)
    return codes.USAGE if broken else codes.PASS


def _print(row: dict[str, object]) -> None:
    cells, tags = row["cells"], row["tags"]
    assert isinstance(cells, list) and isinstance(tags, list)
    about = [f"[{', '.join(tags)}]"] if tags else []
    about += [f"finding {row['finding']}"] if row["finding"] else []
    click.echo("  ".join([f"{row['name']}", str(row["file"]), *about]))
    if row["description"]:
        click.echo(f"    {str(row['description']).splitlines()[0]}")
    if len(cells) > 1:
        click.echo(f"    {len(cells)} cells: {'  '.join(cells)}")
