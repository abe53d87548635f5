"""The matrix: one cell for every combination of the axes' values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from chaos.scenario.variables import Declared, Value

MAX_CELLS = 10_000
"""Most cells of one file."""

_LONGEST_LABEL = 40


def count_cells(declared: Declared) -> int:
    """Return the number of cells of the matrix; 1 without a matrix."""
    return math.prod(len(values) for values in declared.axes.values())


def expand(declared: Declared) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield name and values of every cell, the last axis changing fastest.

    A name such as ``victim=1,phase=step.end`` lists the axes in the order of the file; it is empty without a matrix.
    A value too long for a name is named by its place in the axis, as in ``target=#2``. The values hold the variables
    too, which an axis of the same name overrides.
    """
    labelled = [
        [(f"{axis}={_label(value, place)}", value) for place, value in enumerate(values, start=1)]
        for axis, values in declared.axes.items()
    ]
    for chosen in itertools.product(*labelled):
        cell = {axis: value for axis, (_, value) in zip(declared.axes, chosen, strict=True)}
        yield ",".join(label for label, _ in chosen), {**declared.variables, **cell}


def _label(value: Value, place: int) -> str:
    shown = value.shown
    return shown if len(shown) <= _LONGEST_LABEL else f"#{place}"
