"""The replica groups that survive the loss of ranks, and the ranks that may save for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Survival:
    """The surviving ranks of every replica group after some ranks are lost.

    ``entitled`` holds the surviving ranks of each group, in group order; each of them has a complete copy of the
    group's state. ``lost`` lists the indices of groups with no rank left: nothing can bring their state back.
    """

    entitled: tuple[tuple[int, ...], ...]
    lost: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """Whether every group keeps at least one copy, so that together they hold the whole state."""
        return not self.lost


def survive(groups: Sequence[tuple[int, ...]], dead: Collection[int]) -> Survival:
    """Remove the dead ranks from every replica group. Linear in the number of ranks."""
    gone = frozenset(dead)
    entitled = tuple(
        group if gone.isdisjoint(group) else tuple(rank for rank in group if rank not in gone) for group in groups
    )
    return Survival(entitled, tuple(index for index, left in enumerate(entitled) if not left))
