"""Values that show one promise again and again: some of them every day, the rest every night."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def spread(values: Sequence[Any], every: int) -> list[Any]:
    """Parameters of a test: each ``every``-th value runs every day, from the first on, and the others are nightly."""
    return [_param(value, nightly=number % every != 0) for number, value in enumerate(values)]


def daily(values: Sequence[Any], *names: Any) -> list[Any]:
    """Parameters of a test, by the names of things: those that are named run every day, and the others are nightly."""
    assert set(names) < set(values), "some run every day, and not all"
    return [_param(value, nightly=value not in names) for value in values]


def at_night(*values: Any) -> Any:
    """A parameter of a test, or several that go together, that repeats by night what another shows every day."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def _param(value: Any, *, nightly: bool) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=[pytest.mark.nightly] if nightly else [])
