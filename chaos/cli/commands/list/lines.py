"""How scenarios are listed: one a line below their folders, or each with everything about it."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chaos.scenario.errors import printable

if TYPE_CHECKING:
    from chaos.scenario.load import LoadedScenario

_PIPED_WIDTH = 120


@dataclass(frozen=True)
class Listed:
    """A scenario as it is listed. ``folder`` is where it lies below ``root``, the directory that was searched."""

    file: str
    root: str
    folder: str
    name: str
    description: str
    tags: tuple[str, ...]
    mechanisms: tuple[str, ...]
    faults: tuple[str, ...]
    cells: tuple[str, ...]
    finding: str | None

    def has(self, *, tags: Collection[str], mechanisms: Collection[str], faults: Collection[str]) -> bool:
        """Return whether it has all of these."""
        return {*tags} <= {*self.tags} and {*mechanisms} <= {*self.mechanisms} and {*faults} <= {*self.faults}

    def to_json(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        return {
            "file": self.file,
            "name": self.name,
            "tags": list(self.tags),
            "mechanisms": list(self.mechanisms),
            "faults": list(self.faults),
            "cells": list(self.cells),
            "finding": self.finding,
            "description": self.description,
        }


def listed(loaded: LoadedScenario, path: Path, roots: Sequence[Path]) -> Listed:
    """Return what is listed of a scenario: the faults and mechanisms of all its cells, in their order."""
    first = loaded.cells[0].scenario
    root = next((root for root in roots if root.is_dir() and path.is_relative_to(root)), path.parent)
    return Listed(
        file=str(path),
        root=str(root),
        folder=path.parent.relative_to(root).as_posix(),
        name=first.name,
        description=first.description.strip(),
        tags=tuple(first.tags),
        mechanisms=tuple(dict.fromkeys(name for cell in loaded.cells for name in cell.scenario.job.protection)),
        faults=tuple(dict.fromkeys(fault.kind for cell in loaded.cells for fault in cell.scenario.faults)),
        cells=tuple(cell.name for cell in loaded.cells),
        finding=None if first.known is None else first.known.id,
    )


def print_lines(scenarios: Sequence[Listed]) -> None:
    """Print a line for each scenario below the name of its folder, and the numbers of all.

    Where several directories were searched, their paths are printed as well.
    """
    width = shutil.get_terminal_size((_PIPED_WIDTH, 0)).columns
    several = len({scenario.root for scenario in scenarios}) > 1
    for root, of_root in groupby(scenarios, lambda scenario: scenario.root):
        if several:
            click.echo(f"in {printable(root)}:")
        _print_folders(list(of_root), width)
    if scenarios:
        click.echo(_numbers(scenarios))


def _print_folders(scenarios: Sequence[Listed], width: int) -> None:
    for folder, within in groupby(scenarios, lambda scenario: scenario.folder):
        named = sorted(within, key=lambda scenario: scenario.name)
        names = max(len(scenario.name) for scenario in named)
        if folder != ".":
            click.echo(f"{folder}/")
        for scenario in named:
            click.echo(_line(scenario, names, width))


def print_details(scenarios: Sequence[Listed]) -> None:
    """Print everything about each scenario."""
    for scenario in scenarios:
        about = [f"[{', '.join(scenario.tags)}]"] if scenario.tags else []
        about += [f"finding {scenario.finding}"] if scenario.finding else []
        click.echo("  ".join([scenario.name, scenario.file, *about]))
        if scenario.description:
            click.echo(f"    {scenario.description}")
        if scenario.faults:
            click.echo(f"    faults: {', '.join(scenario.faults)}")
        if len(scenario.cells) > 1:
            click.echo(f"    {len(scenario.cells)} cells: {'  '.join(scenario.cells)}")


def _line(scenario: Listed, names: int, width: int) -> str:
    cells = f"({len(scenario.cells)} cells) " if len(scenario.cells) > 1 else ""
    begin = f"  {scenario.name:<{names}}  "
    text = cells + " ".join(scenario.description.split())
    room = max(width - len(begin), 20)
    return begin + (text if len(text) <= room else text[: room - 3].rstrip(" ,.:;") + "...")


def _numbers(scenarios: Sequence[Listed]) -> str:
    cells = sum(len(scenario.cells) for scenario in scenarios)
    findings = sum(scenario.finding is not None for scenario in scenarios)
    parts = [_count(len(scenarios), "scenario"), _count(cells, "cell")]
    parts += [f"{findings} with a known finding"] if findings else []
    return f"{', '.join(parts)}; chaos list NAME says more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
