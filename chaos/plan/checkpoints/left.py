"""The periodic checkpoints that are left after the faults, and the ranks whose file each rank may load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.plan.checkpoints.saved import Damage
from chaos.plan.checkpoints.savers import every_rank_saves
from chaos.plan.draft import Draft


@dataclass(frozen=True)
class Left:
    """The periodic checkpoints that are left.

    ``lost`` are ranks whose files are gone, ``last`` maps every rank to the last step that it has finished saving,
    ``damaged`` as in the plan. ``any_replica`` are the ranks that may load a file of any rank of their group although
    they have their own. ``unusable`` maps ranks to the step of which they have no file to go on from: of a damaged one,
    or of one that a rank with a damaged file may have saved for them.
    """

    lost: tuple[int, ...]
    last: Mapping[int, int]
    damaged: dict[int, int]
    any_replica: frozenset[int]
    unusable: Mapping[int, int]

    def has(self, rank: int, step: int) -> bool:
        """Return whether a rank has a file to go on from."""
        return rank not in self.lost and self.last[rank] >= step and self.unusable.get(rank) != step

    def lacking(self, step: int) -> bool:
        """Return whether a rank lacks a file of its own to go on from."""
        return any(not self.has(rank, step) for rank in self.last)


def unusable_of(draft: Draft, damage: Damage) -> Mapping[int, int]:
    """Return the step that no file is left of for each rank, where files are damaged.

    A script may let one rank save for its whole group.
    """
    if not draft.traits.resumes_periodic or every_rank_saves(draft.scenario):
        return damage.damaged
    return {
        member: step
        for rank, step in damage.damaged.items()
        for group in draft.groups
        if rank in group
        for member in group
    }


def holders_of(groups: Sequence[tuple[int, ...]], step: int, left: Left) -> dict[int, tuple[int, ...]] | None:
    """Return the ranks whose file of a step each rank may load; None when a group has none."""
    holders: dict[int, tuple[int, ...]] = {}
    for members in groups:
        kept = tuple(rank for rank in members if left.has(rank, step))
        if not kept:
            return None
        for rank in members:
            holders[rank] = (rank,) if rank in kept and rank not in left.any_replica else kept
    return holders


def leaving_out(left: Left) -> str:
    """Return the part of the reason about damaged files; empty without any."""
    if not left.damaged:
        return ""
    damages = ", ".join(f"that of rank {rank} and step {saved}" for rank, saved in sorted(left.damaged.items()))
    return f", leaving out what is damaged: {damages}; no rank may resume from a damaged state"
