"""Whether the cluster has put the ranks where the plan has them: each rank in the pod that is its node.

MindCluster numbers ranks by its rank table, this harness by its nodes. Where both have a number they must be the same,
or a fault aimed at a node would hit other ranks than the plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.base.clock import Clock
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.ranks import UnreadableRankTable, ranks_to_pods, read_rank_table
from chaos.platforms.kubernetes.resources import CONFIGMAP
from chaos.platforms.kubernetes.run_client import RunClient

_RANK_TABLE = "rank table"

TABLE_SECONDS = 30.0
"""Ascend Operator writes its table some time after all pods have addresses, and again when one was replaced."""

_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Placing:
    """The pod of each rank, and the source: ``rank table`` or ``pods`` (their own numbers)."""

    by: str
    pods: Mapping[int, str]


def rank_table(run_client: RunClient, job: str) -> str | None:
    """Return the text of the job's rank table; None where Ascend Operator has made none. Raises ApiError."""
    query = {"fieldSelector": f"metadata.name={names.RANK_TABLE_PREFIX}{job}"}
    configmaps = run_client.api.request("get", CONFIGMAP.path(run_client.namespace), query=query).get("items") or []
    text = (configmaps[0].get("data") or {}).get(names.RANK_TABLE_KEY) if configmaps else None
    return None if text is None else str(text)


def placing(pods: Mapping[int, Mapping[str, Any]], *, table: str | None, ranks: int, nodes: int) -> Placing:
    """Return the pod of each rank. ``pods`` are the job's pods by node; ``table`` is the rank table's text.

    A table that is still being written, or has none of these pods any more, does not count yet; then the pods' numbers
    count. Raises PlatformError where the table has a rank in another pod than its node's.
    """
    try:
        servers = None if table is None else read_rank_table(table)
        by_number = ranks_to_pods(pods.values(), servers=None, ranks=ranks, nodes=nodes)
        by_table = {} if servers is None else ranks_to_pods(pods.values(), servers=servers, ranks=ranks, nodes=nodes)
    except UnreadableRankTable as error:
        raise PlatformError(f"the pod of each rank is unknown: {error}") from error
    each = ranks // nodes
    planned = {rank: str(pod["metadata"]["name"]) for node, pod in pods.items() for rank in _of(node, each)}
    wrong = sorted(rank for rank, pod in by_table.items() if planned.get(rank) != pod)
    if wrong:
        rank = wrong[0]
        raise PlatformError(
            f"the rank table has rank {rank} in pod {by_table[rank]}, and the plan in {planned.get(rank, 'no pod')} "
            f"(node {rank // each}): a fault would hit other ranks than planned; give the pods the order of the table"
        )
    return Placing(_RANK_TABLE, by_table) if by_table else Placing("pods", by_number)


def settled_placing(
    pods: Mapping[int, Mapping[str, Any]], *, ask: Callable[[], str | None], ranks: int, nodes: int, clock: Clock
) -> Placing:
    """Return the placing by the table that ``ask`` returns; wait for a table that does not have all ranks yet.

    The table may have the ranks elsewhere. After ``TABLE_SECONDS`` the present state counts: the operator may be gone.
    """
    deadline = clock.mono() + int(TABLE_SECONDS * 1e9)
    while True:
        table = ask()
        placed = placing(pods, table=table, ranks=ranks, nodes=nodes)
        whole = placed.by == _RANK_TABLE and len(placed.pods) == ranks
        if table is None or whole or clock.mono() > deadline:
            return placed
        clock.sleep(_LOOK_SECONDS)


def _of(node: int, each: int) -> Iterable[int]:
    return range(node * each, (node + 1) * each)
