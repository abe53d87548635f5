"""The properties of a result that JUnit shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_IN_SCENARIO = re.compile(r"scenario\.yaml:(\d{1,9})")


def line_of(result: Mapping[str, Any], first: int) -> int:
    """Return the line of the scenario that the cause of the verdict names, else its ``first`` line.

    A key that the scenario lacks has line 1 as its place, which tells a reader nothing.
    """
    deciding = [check for check in result["checks"] if check.get("order") is not None]
    for check in sorted(deciding, key=lambda check: int(check["order"])):
        for place in check["where"]:
            if (match := _IN_SCENARIO.fullmatch(place)) is not None and int(match[1]) > 1:
                return int(match[1])
    return first


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
