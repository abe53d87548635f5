"""What ``chaos soak --kill`` says of its kills, and how it clears a place that it has used."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from chaos.heal.heal import heal_all
from chaos.soak.kill_soak import KillTally


def heal_and_remove(place: Path) -> None:
    """Put back what a soak has left in a place, and remove that; what cannot be put back stays, and is told."""
    reports = heal_all(place)
    if all(report.ok for report in reports):
        shutil.rmtree(place)
    for text in (text for report in reports for text in report.failed):
        click.echo(f"{place}: {text}", err=True)


def print_tallies(tallies: list[KillTally], times: int, reports: Path) -> None:
    """Say what the kills of each cell came to."""
    for one in tallies:
        name = f"{one.scenario}[{one.cell}]" if one.cell else one.scenario
        counts = f"{one.killed} of {times} killed, {one.healed} with something to heal, {one.left} left something"
        if one.missed:
            counts += f"; never with an open step of {', '.join(one.missed)}"
        click.echo(f"{'bad' if one.left else 'good' if one.killed >= times else 'open':<6}  {name}: {counts}")
    click.echo(f"the kills are in {reports / 'kills.jsonl'}, and what was left in {reports / 'kills'}")
