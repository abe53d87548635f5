"""``chaos schema``: the scenario language for editors (JSON Schema) and for people (Markdown)."""

from __future__ import annotations

import click

from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json


@click.command("schema", short_help="Print the JSON Schema of a scenario.")
@click.option("--markdown", is_flag=True, help="Print the reference of all keys as Markdown instead.")
@debug_option
def command(markdown: bool) -> int:
    """Print the JSON Schema (draft-07) of a scenario file.

    \b
    An editor with a YAML language server uses it when the file's first line is
      # yaml-language-server: $schema=scenario.schema.json
    """
    from chaos.run.prepare.prepare import known_names
    from chaos.scenario.schema import scenario_schema

    if markdown:
        from chaos.manual.scenario import reference

        click.echo(reference(scenario_schema()), nl=False)
    else:
        echo_json(scenario_schema(known_names()))
    return 0
