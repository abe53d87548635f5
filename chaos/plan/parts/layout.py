"""The ranks of the planned job, and what each rank can report."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.plan.topology.layout import Layout
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Shard


@dataclass(frozen=True)
class RankLayout:
    """How many ranks and nodes the job has, and which ranks hold the same state.

    ``replica_groups`` lists ranks that hold identical weights and optimizer state, ordered by their first rank.
    ``group_info``: the job must list these groups in ``group_info.pb``. ``loss_ranks`` are the first and the last
    rank whose loss is valid, None for all. ``shard`` is what PyTorch spreads over ranks; with ``optimizer`` the ranks
    of a group hold the same weights, and each the optimizer's state of some of them.
    """

    ranks: int
    nodes: int
    replica_groups: tuple[tuple[int, ...], ...]
    group_info: bool = False
    loss_ranks: tuple[int, int] | None = None
    shard: Shard = "none"

    def has_loss(self, rank: int) -> bool:
        """Return whether the loss of a rank is valid: on pipeline stages before the last one it is not."""
        return self.loss_ranks is None or self.loss_ranks[0] <= rank <= self.loss_ranks[1]


def plan_layout(
    layout: Layout, groups: tuple[tuple[int, ...], ...], traits: JobTraits, *, group_info: bool
) -> RankLayout:
    """Return the ranks with their replica groups, as this kind of job shows them."""
    return RankLayout(layout.ranks, layout.nodes, groups, group_info, loss_ranks(layout, traits), layout.shard)


def loss_ranks(layout: Layout, traits: JobTraits) -> tuple[int, int] | None:
    """Return the first and the last rank with a valid loss; None for all.

    Source: MindFormers, MFLossMonitor ("the loss on the last card is valid", with zero_bubble_v "only on rank 0").
    """
    if layout.stages == 1:
        return None
    valid = layout.stage_ranks(0 if traits.loss_on_rank_0 else layout.stages - 1)
    return (valid[0], valid[0] if traits.loss_on_rank_0 else valid[-1])
