"""The ranks that save: one complete copy of every replica group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


class Replicas:
    """Replica groups as the ranks report them. Until every group is known neither dump nor repair is possible."""

    def __init__(self, world_size: int) -> None:
        self._world_size = world_size
        self._groups: dict[int, tuple[int, ...]] = {}

    def report(self, rank: int, members: Sequence[int]) -> bool:
        """Take a rank's report. Returns True when its group was not known before."""
        group = tuple(sorted(members))
        new = group not in self._groups.values()
        self._groups[rank] = group
        return new

    def complete(self) -> bool:
        """Return whether every rank's group is known; one of its members may have died before it could report it."""
        return len({rank for group in self._groups.values() for rank in group}) == self._world_size

    def groups(self) -> list[tuple[int, ...]]:
        """Return the groups, ordered by their first rank."""
        return sorted(set(self._groups.values()))

    def savers(self, good: set[int]) -> tuple[list[int], list[tuple[int, ...]]]:
        """Return the lowest good rank of each group, and the groups that have none."""
        chosen = [(group, _first(group, good)) for group in self.groups()]
        return (
            sorted({rank for _, rank in chosen if rank is not None}),
            [group for group, rank in chosen if rank is None],
        )

    def renamer(self, savers: Collection[int]) -> int:
        """Return the rank that renames when all have saved: the first saver except rank 0, as in the vendor's SDK.

        The groups count in the order of their reports.
        """
        ordered = [rank for group in dict.fromkeys(self._groups.values()) for rank in group if rank in savers]
        return next((rank for rank in ordered if rank), 0)


def _first(group: Iterable[int], good: set[int]) -> int | None:
    return next((rank for rank in group if rank in good), None)
