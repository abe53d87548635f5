"""Pairs of a scenario's cells that are compared with each other."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.scenario.load import Cell


def pairs(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return pairs of cells that differ in the compared axis alone, each with the axis's first value first.

    Empty if the scenario compares nothing. A cell with a partner that is not among ``cells`` is in no pair.
    """
    cell_pairs: list[tuple[Cell, Cell]] = []
    for cell in cells:
        compare = cell.scenario.compare
        if compare is None:
            continue
        values = cell.scenario.matrix[compare.axis]
        others = [other for other in cells if _differ_in(cell, other, compare.axis)]
        if cell.values[compare.axis] == values[0] and others:
            cell_pairs.append((cell, others[0]))
    return cell_pairs


def _differ_in(cell: Cell, other: Cell, axis: str) -> bool:
    names = cell.scenario.matrix
    return cell.values[axis] != other.values[axis] and all(
        cell.values[name] == other.values[name] for name in names if name != axis
    )
