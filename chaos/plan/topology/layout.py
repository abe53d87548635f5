"""Rank layout: the position of each rank in the device matrix, and the ranks that hold the same state.

MindSpore's device matrix is (pipeline stage, data parallel, model parallel) with the last dimension fastest:
``rank = stage * (ranks / stages) + data * model_size + model``. All functions are linear in the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chaos.plan.topology.errors import TopologyError
from chaos.scenario.models.parallel import effective_parallel
from chaos.scenario.models.scenario import Cluster, Parallel, Shard


class Position(NamedTuple):
    """The position of a rank: pipeline stage, index in the data dimension, index in the model dimension."""

    stage: int
    data: int
    model: int


@dataclass(frozen=True)
class Layout:
    """Parallel sizes that add up. Made by :func:`layout_of`, which checks them.

    ``shards`` is the number of ranks that one copy of the optimizer state is spread over; 1 without optimizer
    parallelism. ``optimizer_parallel`` tells the two apart where shards is 1. ``shard`` is what PyTorch spreads over
    them. ``replica_stride`` is the distance between ranks of a stage that hold the same state, where experts decide it
    and not the dense weights.
    """

    ranks: int
    nodes: int
    stages: int
    data: int
    model: int
    shards: int
    optimizer_parallel: bool
    shard: Shard = "none"
    replica_stride: int | None = None

    @property
    def ranks_per_stage(self) -> int:
        """Ranks of one pipeline stage."""
        return self.data * self.model

    @property
    def ranks_per_node(self) -> int:
        """Ranks on one node."""
        return self.ranks // self.nodes

    @property
    def copies(self) -> int:
        """Ranks that hold identical dense weights and their optimizer state."""
        return self.data // self.shards

    @property
    def stride(self) -> int:
        """Distance between neighbours of a replica group; of one where only the optimizer's state is sharded, too."""
        return self.replica_stride or (self.model if self.shard == "optimizer" else self.shards * self.model)

    def position(self, rank: int) -> Position:
        """Return the position of a rank in the device matrix."""
        stage, rest = divmod(rank, self.ranks_per_stage)
        return Position(stage, *divmod(rest, self.model))

    def node_ranks(self, node: int) -> range:
        """Return the ranks of a node: ranks are spread over the nodes evenly, in order."""
        return range(node * self.ranks_per_node, (node + 1) * self.ranks_per_node)

    def stage_ranks(self, stage: int) -> range:
        """Return the ranks of a pipeline stage."""
        return range(stage * self.ranks_per_stage, (stage + 1) * self.ranks_per_stage)


def layout_of(cluster: Cluster) -> Layout:
    """Check a cluster's sizes against each other.

    Raises:
        TopologyError: sizes that do not multiply to the number of ranks, ranks that do not spread evenly over the
            nodes, an optimizer shard size or a number of copies that does not divide the data-parallel size, or that
            nothing switches on.
    """
    parallel = effective_parallel(cluster)
    data, model, stages = parallel.data_parallel, parallel.model_parallel, parallel.pipeline_stage
    if data * model * stages != cluster.ranks:
        raise TopologyError(
            "parallel",
            f"data_parallel {data} x model_parallel {model} x pipeline_stage {stages} is {data * model * stages}, "
            f"but the cluster has {cluster.ranks} ranks",
            "the three sizes must multiply to the number of ranks",
        )
    if cluster.ranks % cluster.nodes:
        raise TopologyError(
            "nodes",
            f"{cluster.ranks} ranks cannot be spread evenly over {cluster.nodes} nodes",
            "every node must have the same number of ranks",
        )
    return Layout(
        ranks=cluster.ranks,
        nodes=cluster.nodes,
        stages=stages,
        data=data,
        model=model,
        shards=_shards(parallel),
        optimizer_parallel=parallel.enable_parallel_optimizer,
        shard=parallel.shard,
    )


def _shards(parallel: Parallel) -> int:
    """Return the number of ranks that hold one copy of the optimizer state.

    By default it is spread over the whole data-parallel dimension.
    """
    size = parallel.optimizer_weight_shard_size
    _check_copies(parallel)
    if parallel.shard != "none":
        return parallel.data_parallel // (parallel.copies or 1)
    if not parallel.enable_parallel_optimizer:
        if size is not None:
            raise TopologyError(
                "parallel.optimizer_weight_shard_size",
                f"optimizer_weight_shard_size {size} has no effect while enable_parallel_optimizer is false",
                "set enable_parallel_optimizer: true or leave the size out",
            )
        return 1
    if size is None:
        return parallel.data_parallel
    if parallel.data_parallel % size:
        raise TopologyError(
            "parallel.optimizer_weight_shard_size",
            f"optimizer_weight_shard_size {size} does not divide data_parallel {parallel.data_parallel}",
            "the number of copies, data_parallel / optimizer_weight_shard_size, must be a whole number",
        )
    return size


def _check_copies(parallel: Parallel) -> None:
    """Raise TopologyError for copies that no whole number of ranks can hold, and for shards that are said twice."""
    if parallel.shard == "none":
        if parallel.copies is not None:
            raise TopologyError(
                "parallel.copies",
                f"copies {parallel.copies} has no effect while shard is none",
                "set shard: full or shard: optimizer, or leave copies out",
            )
        return
    if parallel.enable_parallel_optimizer:
        raise TopologyError(
            "parallel.shard",
            "enable_parallel_optimizer is MindSpore's and shard is PyTorch's, and only one of them can hold",
            "leave one of them out",
        )
    if parallel.data_parallel % (parallel.copies or 1):
        raise TopologyError(
            "parallel.copies",
            f"copies {parallel.copies} does not divide data_parallel {parallel.data_parallel}",
            "every copy must be sharded over the same number of ranks",
        )


def replica_groups(layout: Layout) -> tuple[tuple[int, ...], ...]:
    """Return the groups of ranks with identical weights and optimizer state, ordered by their first rank.

    Without optimizer parallelism: all ranks of one (stage, model) position across the data dimension. With it, the
    optimizer state is sliced over ``shards`` consecutive data indices, so replicas are the data indices that are equal
    modulo ``shards``. Source: MindSpore Transformers, Training High Availability, replica relationships. Where experts
    are spread over ranks that are replicas in everything else, the layout says the distance.

    PyTorch's ``shard: full`` is the same arithmetic. With ``shard: optimizer`` the ranks of a group hold the same
    weights, and each keeps the optimizer's state of some of them.
    """
    return tuple(_groups(layout))


def reducing_groups(cluster: Cluster, groups: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
    """Return the groups of ranks that reduce the gradients of a step together: as a rule its replica groups ``groups``.

    With PyTorch's ``shard: full`` all ranks of a pipeline stage do, since each keeps a part of every gradient (FSDP2).
    """
    parallel = effective_parallel(cluster)
    if parallel.shard != "full":
        return groups
    size = cluster.ranks // parallel.pipeline_stage
    return [tuple(range(first, first + size)) for first in range(0, cluster.ranks, size)]


def _groups(layout: Layout) -> Iterator[tuple[int, ...]]:
    stride = layout.stride
    for stage in range(layout.stages):
        ranks = layout.stage_ranks(stage)
        for first in ranks[:stride]:
            yield tuple(range(first, ranks.stop, stride))
