"""Targets: from a fault's target in the scenario to the ranks that it hits."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from chaos.plan.topology.errors import TopologyError
from chaos.plan.topology.layout import Layout
from chaos.scenario.models.fault import RandomTarget, Target

Controller = Literal["rank 0", "outside"]

BESIDE_RANKS = ("launcher", "scheduler", "lighthouse")
"""Roles of processes that are no rank."""

_KEYS = ("rank", "ranks", "node", "replica_group", "role", "random")


@dataclass(frozen=True)
class Resolved:
    """The ranks of a target, in order, and the seed that drew them (None where nothing was drawn).

    ``role`` is a process beside the ranks that is the target instead; then there are no ranks.
    """

    ranks: tuple[int, ...]
    seed: int | None = None
    role: str | None = None


def resolve(
    target: Target,
    layout: Layout,
    groups: Sequence[tuple[int, ...]],
    controller: Controller,
    draw_seed: Callable[[], int],
) -> Resolved:
    """Resolve a target to ranks.

    Args:
        target: the scenario's target; exactly one of its keys is set.
        layout: the checked layout.
        groups: replica groups of the layout, for ``replica_group``.
        controller: the place of the MindIO TFT controller.
        draw_seed: gives a fresh seed for a random target that has none; called only then.

    Raises:
        TopologyError: a target that this layout does not have; ``key`` is relative to the target.
    """
    _check_one_key(target)
    if target.random is not None:
        return _draw(target.random, layout, draw_seed)
    if target.rank is not None:
        return Resolved(_checked("rank", (target.rank,), layout))
    if target.ranks is not None:
        return Resolved(_checked("ranks", target.ranks, layout))
    if target.node is not None:
        _check_index("node", "node", target.node, layout.nodes)
        return Resolved(tuple(layout.node_ranks(target.node)))
    if target.replica_group is not None:
        _check_index("replica_group", "replica group", target.replica_group, len(groups))
        return Resolved(groups[target.replica_group])
    if target.role in BESIDE_RANKS:
        return Resolved((), role=target.role)
    if target.role == "last_stage":
        return Resolved(tuple(layout.stage_ranks(layout.stages - 1)))
    return Resolved(_controller_rank(controller))


def _check_one_key(target: Target) -> None:
    chosen = [key for key in _KEYS if getattr(target, key) is not None]
    if len(chosen) != 1:
        raise TopologyError(
            chosen[-1] if chosen else "",
            f"a target names exactly one thing to hit, this one names {', '.join(chosen) or 'none'}",
            f"keep one of {', '.join(chosen or _KEYS)}",
        )


def _controller_rank(controller: Controller) -> tuple[int, ...]:
    if controller != "rank 0":
        raise TopologyError(
            "role",
            "the controller lives outside the ranks, so no rank hosts it",
            'name a rank, or set job.controller: "rank 0"',
        )
    return (0,)


def _draw(target: RandomTarget, layout: Layout, draw_seed: Callable[[], int]) -> Resolved:
    # The pool is sorted so that a seed draws the same ranks however the list was written.
    pool = range(layout.ranks) if target.among is None else _checked("random.among", target.among, layout)
    if target.count > len(pool):
        raise TopologyError(
            "random.count", f"{target.count} ranks cannot be drawn from {len(pool)}", f"draw at most {len(pool)}"
        )
    seed = draw_seed() if target.seed is None else target.seed
    return Resolved(tuple(sorted(random.Random(seed).sample(pool, target.count))), seed)


def _checked(key: str, ranks: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Return the ranks in order; each must be known to the layout and named once."""
    named: set[int] = set()
    for rank in ranks:
        if not 0 <= rank < layout.ranks:
            raise TopologyError(key, f"there is no rank {rank} of {layout.ranks}", f"ranks are 0 to {layout.ranks - 1}")
        if rank in named:
            raise TopologyError(key, f"rank {rank} is listed twice", "name each rank once")
        named.add(rank)
    return tuple(sorted(ranks))


def _check_index(key: str, noun: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise TopologyError(key, f"there is no {noun} {index} of {count}", f"{noun}s are 0 to {count - 1}")
