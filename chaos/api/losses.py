"""The losses of a run, from its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.history.reader import History

BASELINE = "baseline"


@dataclass(frozen=True)
class Losses:
    """Losses by step, as the agent of rank ``rank`` recorded them; a step that was trained again has its last loss.

    ``baseline`` holds those of the fault-free run. Either is empty where the agents recorded none.
    """

    rank: int
    by_step: Mapping[int, float]
    baseline: Mapping[int, float]


def read_losses(directory: Path) -> Losses:
    """Read the losses of the first rank whose loss is valid by the plan."""
    from chaos.history.reader import read_history
    from chaos.plan.io import loads

    plan = loads((directory / "plan.json").read_bytes())
    rank = plan.layout.loss_ranks[0] if plan.layout.loss_ranks else 0
    history = directory / BASELINE / "history"
    baseline = _by_step(read_history(history), rank) if history.is_dir() else {}
    return Losses(
        rank, MappingProxyType(_by_step(read_history(directory / "history"), rank)), MappingProxyType(baseline)
    )


def _by_step(history: History, rank: int) -> dict[int, float]:
    from chaos.evidence.baseline import loss_of

    losses: dict[int, float] = {}
    for event in history.select("digest", rank=rank):
        step, loss = event.data.get("step"), loss_of(event)
        if isinstance(step, int) and loss is not None:
            losses[step] = loss
    return losses
