"""``chaos validate``: every problem of scenario files, before anything starts."""

from __future__ import annotations

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option
from chaos.cli.scenarios import named_files
from chaos.scenario.errors import ScenarioError

_ANY_SEED = 0


@click.command("validate", short_help="Check scenario files and print every problem.")
@click.argument("paths", nargs=-1, required=True, metavar="SCENARIO...", shell_complete=completion.scenarios)
@json_option
@debug_option
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """Check scenario files, and those in directories, and print every problem of each.

    SCENARIO is a file, a directory, a pipe, - for standard input, or a name in scenarios/. Also plans every cell, so
    an expectation that cannot be met is found too. Ends with 64 when there is a problem.

    \b
    Examples:
      chaos validate scenarios/
      chaos validate kill-rank.yaml --json
    """
    from chaos.run.prepare.prepare import known_names, plan_cell
    from chaos.scenario.load import load_scenario

    names = known_names()
    files = named_files(paths)
    if not files:
        raise click.UsageError(f"no scenario (a YAML file whose first key is `chaos`) in {', '.join(paths)}")
    problems: list[dict[str, object]] = []
    cells = 0
    for path in files:
        try:
            loaded = load_scenario(path, settings={}, names=names)
            for cell in loaded.cells:
                cells += 1
                plan_cell(loaded, cell, _ANY_SEED)
        except ScenarioError as error:
            if not as_json:
                click.echo(str(error))
            problems += [
                {
                    "file": problem.file,
                    "line": problem.line or None,
                    "column": problem.column or None,
                    "message": problem.message,
                    "text": problem.text,
                    "hint": problem.hint,
                }
                for problem in error.problems
            ]
    if as_json:
        echo_json({"schema_version": 1, "files": len(files), "cells": cells, "problems": problems})
    elif problems:
        click.echo(f"{_count(len(problems), 'problem')} in {_count(len(files), 'file')}")
    else:
        click.echo(f"{_count(len(files), 'file')}, {_count(cells, 'cell')}: no problems")
    return codes.USAGE if problems else codes.PASS


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
