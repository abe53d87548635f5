"""The fields of evidence, which may hold anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Fields = Mapping[str, Any]


def number(evidence: Fields, key: str) -> float | None:
    """Return the number under a key; None where there is none."""
    value = evidence.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def some(key: str) -> Callable[[Fields, Fields], str | None]:
    """Return a judge of whether the evidence has a number above 0 under ``key``."""

    def judge(parameters: Fields, evidence: Fields) -> str | None:
        del parameters
        return None if (number(evidence, key) or 0) > 0 else f"{key} is {evidence.get(key)}"

    return judge
