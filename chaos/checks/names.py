"""The names of the checks: known without importing any of them, or numpy with them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

GROUP = "chaos.checks"
"""Entry point group by which another package adds a check."""

BUILT_IN_NAMES = (
    "history",
    "run",
    "injection",
    "mechanism",
    "checkpoint",
    "resume",
    "loss",
    "consistency",
    "recovery",
    "hygiene",
)
"""The checks of this project, in the order in which a report shows them."""


def added_checks(points: Iterable[EntryPoint] | None = None) -> list[EntryPoint]:
    """Return the checks of other packages by name. A name of a built-in check cannot be taken.

    ``points`` stands in for the installed entry points.
    """
    registered = entry_points(group=GROUP) if points is None else points
    return sorted((point for point in registered if point.name not in BUILT_IN_NAMES), key=lambda point: point.name)


def check_names() -> tuple[str, ...]:
    """Return the names of all checks, the names of other packages' checks last."""
    return tuple(dict.fromkeys((*BUILT_IN_NAMES, *(point.name for point in added_checks()))))
