"""Retired names of attributes that packages set on the objects they register, each with its new name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

RETIRED: Mapping[str, Mapping[str, str]] = {
    "chaos.faults": {"seen_at_once": "shows_when_let_go, with the opposite value"},
    "chaos.platforms": {
        "must_be_told": "needs_settings",
        "own_ways": "caller_access",
        "why_not": "unsupported",
    },
}
"""Old name → new name, by entry point group. An object that still has the old name would be misunderstood silently."""


def retired_attributes(group: str, registered: object) -> Iterator[str]:
    """Yield a sentence for each retired attribute that an object has."""
    known = frozenset(dir(registered))
    for old, new in RETIRED.get(group, {}).items():
        if old in known:
            yield sentence(old, new)


def retired_keywords(group: str, error: Exception) -> Iterator[str]:
    """Yield a sentence for each retired name that Python refuses as a keyword argument."""
    for old, new in RETIRED.get(group, {}).items():
        if isinstance(error, TypeError) and repr(old) in str(error):
            yield sentence(old, new)


def sentence(old: str, new: str) -> str:
    """Return what has become of the old name."""
    return f"its attribute {old} is retired: set {new}"
