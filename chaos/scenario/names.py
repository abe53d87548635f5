"""Registered names that a scenario may use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownNames:
    """Names from the registries, handed in by the caller. None: that kind of name is not checked."""

    fault_kinds: Collection[str] | None = None
    job_kinds: Collection[str] | None = None
    platforms: Collection[str] | None = None
