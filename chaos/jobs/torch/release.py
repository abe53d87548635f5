"""The numbers of a release."""

from __future__ import annotations

import re


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
