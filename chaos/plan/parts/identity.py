"""The identity of a plan: its scenario and its cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """The scenario's name, its file, and the matrix cell; an empty cell where there is no matrix."""

    scenario: str
    source: str
    cell: str
