"""``chaos list``: the existing scenarios."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

from chaos.cli import codes, completion
from chaos.cli.commands.list.lines import Listed, listed, print_details, print_lines
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option
from chaos.cli.paths import scenario_directories
from chaos.cli.scenarios import named_files
from chaos.scenario.errors import ScenarioError, suggest
from chaos.scenario.find import iter_scenarios
from chaos.scenario.models.mechanisms import mechanism_names


@click.command("list", short_help="List scenarios by their folders.")
@click.argument("paths", nargs=-1, metavar="[SCENARIO]...", shell_complete=completion.scenarios)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    shell_complete=completion.tags,
    help="Only those with this tag; repeat it for all of them.",
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.mechanisms,
    help="Only those whose job has this mechanism on; repeat it for all of them.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND",
    shell_complete=completion.kinds,
    help="Only those with this fault; repeat it for all of them.",
)
@json_option
@debug_option
def command(
    paths: tuple[str, ...], tags: tuple[str, ...], mechanisms: tuple[str, ...], faults: tuple[str, ...], as_json: bool
) -> int:
    """List scenarios, one a line, by their folders.

    SCENARIO is a file, a directory, or a name in scenarios/. Without one: the directories in which `chaos run` looks
    for names, your own before those that chaos comes with. Of a single file the tags, the cells and the whole
    description are shown. Ends with 64 when a file is broken.

    \b
    Examples:
      chaos list
      chaos list --mechanism TTP --fault kill
      chaos list --tag network
      chaos list kill-rank
      chaos list scenarios/ --json
    """
    from chaos.run.prepare.prepare import known_names

    mechanisms = tuple(_known(name.upper(), mechanism_names(), "--mechanism") for name in mechanisms)
    faults = tuple(_known(name, known_names().fault_kinds or (), "--fault") for name in faults)
    scenarios, broken = _scenarios(paths)
    _check_tags(tags, scenarios)
    chosen = [scenario for scenario in scenarios if scenario.has(tags=tags, mechanisms=mechanisms, faults=faults)]
    if as_json:
        echo_json({"schema_version": 1, "scenarios": [scenario.to_json() for scenario in chosen]})
    elif paths and not any(Path(path).is_dir() for path in paths):
        print_details(chosen)
    else:
        print_lines(chosen)
    if not chosen and not as_json:
        click.echo(
            "no scenarios" if not scenarios else f"none of the {len(scenarios)} scenarios has all of these", err=True
        )
    return codes.USAGE if broken else codes.PASS


def _scenarios(paths: tuple[str, ...]) -> tuple[list[Listed], bool]:
    """Return the scenarios of the command line, and whether a file is broken; its problems are printed."""
    from chaos.run.prepare.prepare import known_names
    from chaos.scenario.load import load_scenario

    names = known_names()
    roots = tuple(Path(path) for path in paths) or scenario_directories(Path.cwd())
    scenarios, broken = [], False
    for path in named_files(paths) if paths else _found_by_name(roots):
        try:
            scenarios.append(listed(load_scenario(path, settings={}, names=names), path, roots))
        except ScenarioError as error:
            broken = True
            click.echo(str(error), err=True)
    return scenarios, broken


def _found_by_name(roots: Sequence[Path]) -> list[Path]:
    """Return the scenarios of directories without those whose name an earlier directory has: it finds no other."""
    scenarios: list[Path] = []
    for root in roots:
        names = {path.stem for path in scenarios}
        scenarios += [path for path in iter_scenarios([root]) if path.stem not in names]
    return scenarios


def _known(name: str, names: Collection[str], option: str) -> str:
    """Return a name that is among ``names``. Raises click.UsageError for another one, with the name that was meant."""
    if name not in names:
        raise click.UsageError(f"{option}: there is no {name!r}; {suggest(name, names)}")
    return name


def _check_tags(tags: Sequence[str], scenarios: Sequence[Listed]) -> None:
    """Raise click.UsageError for a tag that no scenario has, with the tag that was meant."""
    known = sorted({tag for scenario in scenarios for tag in scenario.tags})
    strange = [tag for tag in tags if tag not in known]
    if strange and known:
        raise click.UsageError(f"--tag: no scenario has the tag {strange[0]!r}; {suggest(strange[0], known)}")
