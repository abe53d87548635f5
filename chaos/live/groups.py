"""Ranks in groups that a reader can survey: by node, by replica group, or by neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from chaos.base.rank_sets import spans
from chaos.live.state import STATES, GroupState, RankState
from chaos.plan.model import Plan

MOST_RANKS = 64
"""Ranks that are shown one by one. More are shown in groups."""


def grouping(plan: Plan) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return the kind, the name and the ranks of each group."""
    ranks, nodes, replicas = plan.layout.ranks, plan.layout.nodes, plan.layout.replica_groups
    if 1 < nodes <= MOST_RANKS:
        each = node_size(plan)
        return [("node", f"node {n}", tuple(range(n * each, min(ranks, (n + 1) * each)))) for n in range(nodes)]
    if 1 < len(replicas) <= MOST_RANKS:
        return [("replica group", f"replica group {n}", group) for n, group in enumerate(replicas)]
    if ranks <= MOST_RANKS:
        return [("ranks", f"ranks {spans(range(ranks))}", tuple(range(ranks)))]
    each = -(-ranks // MOST_RANKS)
    blocks = [tuple(range(first, min(ranks, first + each))) for first in range(0, ranks, each)]
    return [("ranks", f"ranks {spans(block)}", block) for block in blocks]


def node_size(plan: Plan) -> int:
    """Return the number of ranks on a node."""
    return max(1, -(-plan.layout.ranks // max(1, plan.layout.nodes)))


def group_states(groups: Sequence[tuple[str, str, tuple[int, ...]]], ranks: Sequence[RankState]) -> list[GroupState]:
    """Return the number of ranks in each state, by group."""
    states = []
    for kind, name, members in groups:
        counts = Counter(ranks[rank].state for rank in members if 0 <= rank < len(ranks))
        ordered = {state: counts[state] for state in STATES if counts[state]}
        states.append(GroupState(name, kind, spans(members), len(members), ordered))
    return states
