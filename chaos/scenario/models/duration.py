"""Durations with units."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
PATTERN = r"^\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m|h)\s*$"
"""The form of a duration, as a regular expression that Python and JSON Schema read alike."""

LONGEST = 366 * 24 * 3600.0
"""Seconds of the longest duration: no clock of the machine is asked to wait for more."""

_DURATION = re.compile(PATTERN)


def parse_duration(value: object) -> float:
    """Turn ``5s``, ``200ms``, ``2m`` or ``1h`` into seconds.

    A float passes through: it is a default in seconds already. Raises ValueError on anything else, a bare
    integer included, since its unit would be a guess.
    """
    if isinstance(value, float):
        return value
    if isinstance(value, str) and (match := _DURATION.match(value)):
        seconds = float(match[1]) * _UNITS[match[2]]
        if not seconds <= LONGEST:
            raise ValueError("a duration is at most 8784h, a year")
        return seconds
    raise ValueError("a duration needs a unit: 200ms, 5s, 2m or 1h")


def show_duration(seconds: float) -> str:
    """Write a duration so that parse_duration reads it again, to the microsecond: ``5s``, ``0.2s``, ``1000000s``."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"
