"""Communication groups of a rehearsal: names to ranks, as ``mindspore.communication`` keeps them on a device.

A group has no connections of its own. Its collectives run over the communicator of all ranks, so it is stopped and
rebuilt with that communicator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

WORLD_GROUPS = frozenset({"hccl_world_group", "nccl_world_group", "mccl_world_group"})
"""MindSpore's names for the group of all ranks, by backend."""


class Groups:
    """The groups that one rank has created, and the group of all ranks."""

    def __init__(self, rank: int, ranks: int) -> None:
        self._rank = rank
        self._world = tuple(range(ranks))
        self._members: dict[str, tuple[int, ...]] = {}

    def create(self, name: str, ranks: Sequence[int]) -> None:
        """Create a group.

        As on a device, only its members may; the same name again must mean the same ranks. Raises RuntimeError when the
        group is impossible.
        """
        members = tuple(sorted(int(rank) for rank in ranks))
        if name in WORLD_GROUPS or self._members.get(name, members) != members:
            raise RuntimeError(f"create_group: there is a group {name!r} already, with other ranks than {list(ranks)}")
        if self._rank not in members or len(set(members)) < len(members) or not set(members) <= set(self._world):
            raise RuntimeError(f"create_group: rank {self._rank} cannot create group {name!r} of ranks {list(ranks)}")
        self._members[name] = members

    def destroy(self, name: str) -> None:
        """Remove a group. Raises RuntimeError for a group that was not created."""
        self.members(name)
        self._members.pop(name, None)

    def members(self, name: str | None) -> tuple[int, ...]:
        """Return the ranks of a group, in order; all ranks for None.

        Raises RuntimeError for a group that was not created.
        """
        if name is None or name in WORLD_GROUPS:
            return self._world
        if name not in self._members:
            raise RuntimeError(f"group {name!r} was not created on rank {self._rank}")
        return self._members[name]

    def replacements(self) -> dict[str, Callable[..., Any]]:
        """Return replacements for the functions of ``mindspore.communication`` about groups, by name."""
        return {
            "create_group": lambda group, rank_ids, options=None: self.create(group, rank_ids),
            "destroy_group": self.destroy,
            "get_rank": lambda group=None: self.members(group).index(self._rank),
            "get_group_size": lambda group=None: len(self.members(group)),
            "get_local_rank": lambda group=None: self.members(group).index(self._rank),
            "get_local_rank_size": lambda group=None: len(self.members(group)),
            "get_process_group_ranks": lambda group=None: list(self.members(group)),
            "get_world_rank_from_group_rank": lambda group, group_rank_id: self.members(group)[group_rank_id],
            "get_group_rank_from_world_rank": lambda world_rank_id, group: self.members(group).index(world_rank_id),
        }
