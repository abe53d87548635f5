"""A fault as the plan knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STORAGE_FULL, STORAGE_READ_ONLY = "storage full", "storage read-only"
STORAGE_ERROR, STORAGE_GONE, STORAGE_DENIED = "storage error", "storage gone", "storage denied"
"""Effects of faults that take no rank: nothing that is saved from then on is finished."""

VOLUME_GONE = "volume gone"
"""Effect of a fault that takes the storage from its own ranks alone: nothing that these save is finished."""

STORAGE = (STORAGE_FULL, STORAGE_READ_ONLY, STORAGE_ERROR, STORAGE_GONE, STORAGE_DENIED, VOLUME_GONE)


@dataclass(frozen=True)
class PlannedFault:
    """One fault with its target resolved to ranks.

    ``seed`` is the seed of a random target, None otherwise. ``trigger`` is the scenario's trigger as plain data.
    ``effect`` is what its kind does to a rank (chaos.plan.schedule.EFFECTS). ``role`` is the process beside the ranks
    that it hits; then it hits no rank. ``taken_back``: what it makes wrong is trained again, from a state of before it.
    """

    id: str
    kind: str
    ranks: tuple[int, ...]
    trigger: dict[str, Any]
    parameters: dict[str, Any]
    seed: int | None
    line: int | None
    effect: str = "none"
    role: str | None = None
    taken_back: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it alone stops no training, so that no mechanism has to answer it."""
        return self.effect in ("none", *STORAGE)
