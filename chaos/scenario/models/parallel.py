"""Parallel sizes that hold for a cluster, written or not."""

from __future__ import annotations

from chaos.scenario.models.scenario import Cluster, Parallel


def effective_parallel(cluster: Cluster) -> Parallel:
    """Return the parallel sizes of a cluster: those written, otherwise one data-parallel dimension over all ranks."""
    return cluster.parallel if cluster.parallel is not None else Parallel(data_parallel=cluster.ranks)
