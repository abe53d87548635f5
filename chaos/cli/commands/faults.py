"""``chaos faults``: the kinds of faults, and all about one of them."""

from __future__ import annotations

import re
import shutil
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any

import click

from chaos.base import registry as registries
from chaos.base.families import FAMILIES
from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option
from chaos.faults.registered import fault_kind
from chaos.manual.prose import module_doc
from chaos.scenario.errors import suggest

if TYPE_CHECKING:
    from chaos.faults.kind import FaultKind

_PIPED_WIDTH = 100


@click.command("faults", short_help="List kinds of faults; explain one, with an example.")
@click.argument("kind", required=False, shell_complete=completion.kinds)
@json_option
@debug_option
def command(kind: str | None, as_json: bool) -> int:
    """List the kinds of faults by their families.

    With KIND: what it does, its parameters, what it needs, and a scenario that can be planned as it stands.

    \b
    Examples:
      chaos faults
      chaos faults network-delay
      chaos list --fault network-delay       the scenarios that show it
    """
    points = registries.registry("faults").points
    if kind is None:
        rows = [_row(name) for name in sorted(points)]
        if as_json:
            echo_json({"schema_version": 1, "kinds": rows})
        else:
            _print_all(rows)
    elif kind not in points:
        raise click.UsageError(f"there is no fault {kind!r}; {suggest(kind, points)}")
    elif as_json:
        from chaos.faults.example import example

        echo_json({"schema_version": 1, **_row(kind), "example": example(fault_kind(kind), 0, 0)})
    else:
        _print_kind(fault_kind(kind))
    return codes.PASS


def _row(name: str) -> dict[str, Any]:
    kind = fault_kind(name)
    parameters = {
        key: {"about": value.about, "range": value.range, "required": value.required, "default": value.default}
        for key, value in (kind.parameters or {}).items()
    }
    return {
        "name": name,
        "family": _family(name),
        "about": _paragraphs(name)[0],
        "effect": str(kind.effect),
        "parameters": parameters,
    }


def _family(name: str) -> str:
    """Return the family of a kind; the package's name for a kind that is registered without one."""
    families = registries.registry(FAMILIES.partition(".")[2])
    for family in families.names():
        if name in families.load(family).kinds:
            return family
    return registries.registry("faults").points[name].module.partition(".")[0]


def _paragraphs(name: str) -> list[str]:
    text = module_doc(registries.registry("faults").points[name]).replace("`", "")
    return [" ".join(part.split()) for part in text.split("\n\n")]


def _print_all(rows: list[dict[str, Any]]) -> None:
    width = _width()
    for family in sorted({row["family"] for row in rows}):
        click.echo(family)
        within = [row for row in rows if row["family"] == family]
        names = max(len(row["name"]) for row in within)
        for row in within:
            first = re.split(r"(?<=[.:;])\s", row["about"])[0].rstrip(".:;")
            room = width - names - 4
            click.echo(
                f"  {row['name']:<{names}}  {first if len(first) <= room else first[: room - 3].rstrip() + '...'}"
            )
    click.echo(f"{len(rows)} kinds; chaos faults KIND explains one")


def _print_kind(kind: FaultKind) -> None:
    from chaos.faults.example import example, needed_place, written

    width, text = _width(), _paragraphs(kind.name)
    click.echo(f"{kind.name} ({_family(kind.name)})")
    for paragraph in text:
        click.echo(fill(paragraph, width, initial_indent="  ", subsequent_indent="  "))
    effect = str(kind.effect)
    facts = [("effect", effect if effect != "none" else "none that the plan reckons with")]
    facts += [("needs", f"{', '.join(kind.needs)} (chaos doctor)")] if kind.needs else []
    facts += [("risk", f"{kind.hazard.risk}: {kind.hazard.disturbs}; allow it by name")] if kind.hazard else []
    facts += [("running jobs", "chaos inject makes it, too")] if kind.from_outside else []
    for name, fact in facts:
        click.echo(fill(fact, width, initial_indent=f"{name:<14}", subsequent_indent=" " * 14))
    if kind.parameters:
        click.echo("parameters")
        names = max(map(len, kind.parameters)) + 4
        for name, parameter in kind.parameters.items():
            default = "required" if parameter.required else f"default {parameter.default}"
            about = f"{parameter.about}; {parameter.range}; {'optional' if default == 'default None' else default}"
            click.echo(fill(about, width, initial_indent=f"  {name}".ljust(names), subsequent_indent=" " * names))
    scenario = example(kind, 0, 0)
    place = needed_place(scenario)
    click.echo(f"example{f' (it needs {place})' if place else ''}")
    click.echo(indent(written(scenario), "  "), nl=False)


def _width() -> int:
    return shutil.get_terminal_size((_PIPED_WIDTH, 0)).columns
