"""Saved checkpoints: the files of a save, and the state of a job's periodic checkpoints after faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chaos.plan.problems import Problems

if TYPE_CHECKING:
    from chaos.plan.draft import Draft
    from chaos.plan.recovery.outcome import Outcome
    from chaos.plan.schedule import Scheduled

MODEL, OPTIMIZER, COMMON, METADATA, INDEX = PARTS = ("model", "optimizer", "common.json", "metadata.json", ".metadata")
"""The files of a save in MindFormers' new layout, and the index of a directory of PyTorch's distributed checkpoints.

Elsewhere a rank's checkpoint, or its part of such a directory, is one file, ``model``.
"""


@dataclass(frozen=True)
class Damage:
    """The damage that faults have done to periodic checkpoints.

    Args:
        lost: the ranks whose files are gone.
        damaged: the step of the file that no rank may go on from, by rank.
        renamed: the ranks whose file is whole under a wrong name, so that a replica's may be taken in its place.
        newest: the last step that the job's records allow, None for no limit.
        why: the statement of the records, in words; empty without damage to them.
    """

    lost: tuple[int, ...] = ()
    damaged: Mapping[int, int] = field(default_factory=dict)
    renamed: frozenset[int] = frozenset()
    newest: int | None = None
    why: str = ""


@dataclass(frozen=True)
class SavedRules:
    """How a family of faults hits the saved checkpoints of a job.

    Args:
        losing: the faults that remove or damage checkpoints.
        check: notes faults that cannot be made, or whose damage no rank would meet.
        damage: the damage, given the last step that each rank has saved up to and the interval.
    """

    losing: Callable[[Draft], list[Scheduled]]
    check: Callable[[Draft, Outcome, Problems], None]
    damage: Callable[[Draft, Mapping[int, int], int, Problems], Damage]
