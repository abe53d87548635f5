"""The properties of a result that JUnit shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def properties(result: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield JUnit properties of a result: the run, the verdict, its headline, and the recovery's phases in seconds."""
    yield "run", result["run"]
    yield "verdict", result["verdict"]
    if headline := result.get("headline"):
        yield "headline", headline["text"]
        yield "headline.id", headline["id"]
    recovery = result.get("recovery") or {}
    if recovery.get("mechanism"):
        yield "recovery.mechanism", recovery["mechanism"]
    for phase, seconds in (recovery.get("phases") or {}).items():
        if seconds is not None:
            yield f"recovery.{phase}", round(seconds, 3)
    if recovery.get("total") is not None:
        yield "recovery.total", round(recovery["total"], 3)
