"""The report of ``chaos soak --kill`` on its kills, and the clean-up of its places."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from chaos.heal.heal import heal_all
from chaos.soak.kill_soak import KillTally


def heal_and_remove(place: Path) -> None:
    """Undo a soak's leftovers in a place, and remove the place; whatever cannot be undone stays, and is reported."""
    reports = heal_all(place)
    if all(report.ok for report in reports):
        shutil.rmtree(place)
    for text in (text for report in reports for text in report.failed):
        click.echo(f"{place}: {text}", err=True)


def print_tallies(tallies: list[KillTally], times: int, reports: Path) -> None:
    """Print the results of the kills of each cell."""
    for tally in tallies:
        name = f"{tally.scenario}[{tally.cell}]" if tally.cell else tally.scenario
        counts = f"{tally.killed} of {times} killed, {tally.healed} with something to heal, {tally.left} left something"
        if tally.missed:
            counts += f"; never with an open step of {', '.join(tally.missed)}"
        click.echo(f"{'bad' if tally.left else 'good' if tally.killed >= times else 'open':<6}  {name}: {counts}")
    click.echo(f"the kills are in {reports / 'kills.jsonl'}, and what was left in {reports / 'kills'}")
