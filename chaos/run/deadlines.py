"""The deadlines of a run: the scenario's, which grow with the ranks where the file does not set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chaos.base.growth import Growing
from chaos.scenario.load import Cell
from chaos.scenario.models.scenario import Deadlines

_GROWTH: Mapping[str, float] = {"run": 10.0, "start": 2.0, "fault": 2.0, "land": 0.5, "end": 4.0, "stop": 0.25}
"""Seconds for each rank beyond the first few. Ranks of a rehearsal share a few cores; ranks of a cluster need no
more."""


def with_deadlines(cell: Cell) -> Cell:
    """Return the cell with the deadlines that hold for its number of ranks."""
    scenario = cell.scenario
    return replace(
        cell,
        scenario=scenario.model_copy(update={"deadlines": grown(scenario.deadlines, scenario.cluster.ranks)}),
    )


def grown(deadlines: Deadlines, ranks: int) -> Deadlines:
    """Return these deadlines for this number of ranks; a deadline that the scenario sets stays as it is."""
    free = _GROWTH.keys() - deadlines.model_fields_set
    return deadlines.model_copy(
        update={name: Growing(getattr(deadlines, name), _GROWTH[name], ranks) for name in sorted(free)}
    )
