"""``chaos doctor``: the abilities of this machine, and the parts that it lacks for the rest."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes, completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option, reports_option
from chaos.scenario.errors import suggest

if TYPE_CHECKING:
    from chaos.doctor import Probe
    from chaos.scenario.load import Cell


@click.command("doctor", short_help="Show what this machine can run, and what is missing.")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...", shell_complete=completion.scenarios)
@click.option(
    "--for", "kinds", multiple=True, metavar="KIND", help="Check one job kind or platform, for example rehearsal."
)
@click.option("--deep", is_flag=True, help="Also import MindSpore, in a separate process.")
@reports_option
@json_option
@debug_option
def command(scenarios: tuple[str, ...], kinds: tuple[str, ...], deep: bool, reports: Path, as_json: bool) -> int:
    """Show what this machine can run, and what is missing for the rest.

    With SCENARIO (a file, or a name in scenarios/) or --for KIND the exit code answers for those: 0 when nothing is
    missing, 2 when something is. Without them it answers for what every run needs, and for whether MindSpore and the
    vendor's MindIO TFT, where that is installed, fit together.

    \b
    Examples:
      chaos doctor
      chaos doctor kill-rank.yaml
      chaos doctor --for rehearsal --deep
    """
    from chaos.doctor import BASE, INTERFACE, Machine, all_probes, import_mindspore, probe

    machine = Machine(reports=reports)
    interpreters: dict[str, Probe] = {}
    requested = _requested(scenarios, kinds, interpreters)
    # A pair that disagrees is refused by every run with the vendor's package: by those of any job with MindSpore.
    needed = {need for needs in requested.values() for need in needs} or {*BASE, INTERFACE}
    probes = [*probe(all_probes(), machine), *interpreters.values()]
    if deep:
        probes.append(import_mindspore(machine))
        if "mindspore" in needed:
            needed.add("mindspore import")
    by_name = {result.need: result for result in probes}
    missing = [name for name, result in by_name.items() if name in needed and not result.ok]
    can = {kind: [need for need in needs if not by_name[need].ok] for kind, needs in _everything().items()}
    with_sdk = [] if by_name[INTERFACE].ok else [kind for kind, needs in _everything().items() if "mindspore" in needs]
    if as_json:
        echo_json(
            {
                "schema_version": 1,
                "python": sys.executable,
                "asked": {name: list(needs) for name, needs in requested.items()},
                "missing": missing,
                "probes": [asdict(result) for result in probes],
                "kinds": {
                    kind: {"runs": not lacking, "missing": lacking, "standin_only": kind in with_sdk}
                    for kind, lacking in can.items()
                },
            }
        )
    else:
        _print(probes, needed, can, requested, missing, with_sdk)
    return codes.UNKNOWN if missing else codes.PASS


def _requested(
    scenarios: tuple[str, ...], kinds: tuple[str, ...], interpreters: dict[str, Probe]
) -> dict[str, tuple[str, ...]]:
    """Return the requested items, with their needs; add the interpreters that scenarios name to ``interpreters``.

    Raises click.UsageError for a kind that does not exist.
    """
    requested: dict[str, tuple[str, ...]] = {}
    for kind in kinds:
        known = _everything()
        if kind not in known:
            raise click.UsageError(f"no job kind or platform {kind!r}; {suggest(kind, known, 'there are')}")
        requested[kind] = known[kind]
    for text in scenarios:
        from chaos.cli.scenarios import load
        from chaos.run.prepare.needs import needs_of_scenario

        loaded = load(text)
        needs = [needs_of_scenario(cell.scenario, beside=loaded.path.parent) for cell in loaded.cells]
        found = {probe.need: probe for cell in loaded.cells if (probe := _interpreter(cell, loaded.path)) is not None}
        interpreters.update(found)
        needs.append(tuple(found))
        requested[str(loaded.path)] = tuple(dict.fromkeys(need for cell_needs in needs for need in cell_needs))
    return requested


def _interpreter(cell: Cell, file: Path) -> Probe | None:
    """Return whether the interpreter that a cell names can run its ranks; None where it names none."""
    from chaos.jobs.kind import job_kind

    return job_kind(cell.scenario.job.kind).interpreter_probe(cell.scenario, file.parent)


def _everything() -> dict[str, tuple[str, ...]]:
    """Return the needs of every registered job kind and platform."""
    from chaos.doctor import needs_of
    from chaos.jobs.kind import job_kinds
    from chaos.platforms.kind import platform_kinds

    jobs = {kind.name: needs_of(kind) for kind in job_kinds()}
    return jobs | {kind.name: needs_of(kind) for kind in sorted(platform_kinds(), key=lambda kind: kind.name)}


def _print(
    probes: list[Probe],
    needed: set[str],
    can: dict[str, list[str]],
    requested: dict[str, tuple[str, ...]],
    missing: list[str],
    with_sdk: list[str],
) -> None:
    width = max(len(result.need) for result in probes)
    click.echo("This machine")
    for result in probes:
        mark = "ok" if result.ok else ("MISSING" if result.need in needed else "absent")
        click.echo(f"  {result.need:<{width}}  {mark:<7}  {result.seen}")
        if result.advice:
            click.echo(f"  {'':<{width}}  {'':<7}  -> {result.advice}")
    click.echo("Can run")
    for kind, lacking in can.items():
        yes = "with --sdk standin or without MindIO TFT only" if kind in with_sdk else "yes"
        click.echo(f"  {kind:<{width}}  {yes if not lacking else 'no: missing ' + ', '.join(lacking)}")
    about = ", ".join(requested) if requested else "every run"
    click.echo(f"Missing for {about}: {', '.join(missing)}" if missing else f"Nothing is missing for {about}.")
