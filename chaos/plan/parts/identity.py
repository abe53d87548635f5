"""Which cell of which scenario a plan is of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """The scenario's name, the file that it stands in, and the matrix cell; an empty cell where there is no matrix."""

    scenario: str
    source: str
    cell: str
