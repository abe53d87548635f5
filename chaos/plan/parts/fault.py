"""A fault in the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.plan.job_effect import NONE, JobEffect


@dataclass(frozen=True)
class PlannedFault:
    """One fault with its target resolved to ranks.

    ``seed`` is the seed of a random target, None otherwise. ``trigger`` is the scenario's trigger as plain data.
    ``effect`` is its effect on the job. ``role`` is the process beside the ranks that it hits; then it hits no rank.
    ``taken_back``: the steps that it makes wrong are trained again, from a state before it.
    """

    id: str
    kind: str
    ranks: tuple[int, ...]
    trigger: dict[str, Any]
    parameters: dict[str, Any]
    seed: int | None
    line: int | None
    effect: JobEffect = NONE
    role: str | None = None
    taken_back: bool = False
