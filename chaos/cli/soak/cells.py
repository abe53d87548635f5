"""The cells of a soak: their names, the keys under which their runs count, and the arguments of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import chaos
from chaos.scenario.pairs import pairs as compared
from chaos.soak.soak import Cell as CellName
from chaos.soak.soak import Keys, keys_of_cells

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario

PACKAGE = Path(chaos.__file__).parent
"""All of the harness's code: a change anywhere in it makes runs of another one."""

Group = tuple["LoadedScenario", tuple["Cell", ...]]
"""A scenario, and its cells that run together."""


class SoakCells:
    """The cells of a soak by their names, with their keys from the beginning of the soak.

    ``codes`` holds the code of each name: a recorded run of another code does not count. ``allowances`` are the
    arguments of ``chaos run`` that allow own checks and hooks.
    """

    def __init__(
        self,
        groups: Mapping[CellName, Group],
        settings: Mapping[str, str],
        sdk: str,
        jobs: int,
        allowances: Sequence[str] = (),
    ) -> None:
        self.groups = groups
        self._allowances = allowances
        self._settings = settings
        self._sdk = sdk
        self._jobs = jobs
        self._keys = {name: self._key(name) for name in groups}
        self.codes = {name: keys.of for name, keys in self._keys.items()}

    def __iter__(self) -> Iterator[CellName]:
        """Iterate over the names."""
        return iter(self.groups)

    def path(self, name: CellName) -> Path:
        """Return the scenario's file."""
        return self.groups[name][0].path

    def counts(self, name: CellName, code: str) -> bool:
        """Return whether a recorded run of a cell is a run of the present code and scenario."""
        return self.codes.get(name) == code

    def arguments(self, name: CellName) -> list[str]:
        """Return the arguments of ``chaos run``: the cells, their SDK, allowed own code, and a share of the cores."""
        arguments = ["--sdk", self._sdk, *self._allowances]
        arguments += [part for cell in self.groups[name][1] if cell.name for part in ("--cell", cell.name)]
        arguments += [part for key, value in self._settings.items() for part in ("--set", f"{key}={value}")]
        if self._jobs > 1:
            arguments += ["--cores", str(max(1, len(os.sched_getaffinity(0)) // self._jobs))]
        return arguments

    def refuse_change(self, name: CellName, what: str) -> None:
        """Raise ClickException where a file behind the cell has changed: ``what`` was made from unknown files."""
        if self._key(name).sources != self._keys[name].sources:
            raise click.ClickException(
                f"{self.path(name)}: the scenario, its checks and hooks, an input of its job, a version or the "
                f"harness's code has changed since the soak began: {what} does not count; start the soak again"
            )

    def _key(self, name: CellName) -> Keys:
        loaded, cells = self.groups[name]
        return keys_of_cells(loaded, cells, self._settings, PACKAGE, self._sdk)


def groups_of(pairs: list[tuple[LoadedScenario, Cell]]) -> Iterator[Group]:
    """Yield the cells that run together: each cell by itself, or two that their scenario compares."""
    for loaded in {id(loaded): loaded for loaded, _ in pairs}.values():
        cells = [cell for other, cell in pairs if other is loaded]
        together = [*compared(cells)]
        paired = {id(cell) for pair in together for cell in pair}
        alone = [(cell,) for cell in cells if id(cell) not in paired]
        yield from ((loaded, group) for group in (*together, *alone))


def name_of(cells: tuple[Cell, ...]) -> CellName:
    """Return the name of cells that run together."""
    return cells[0].scenario.name, " | ".join(cell.name for cell in cells)
