"""Part of check ``consistency``: the replica groups that the job itself reports are the plan's.

The job writes ``group_info.pb`` from its communication groups, and it knows nothing of the plan.
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.observe.checkpoints.group_info import GROUP_INFO, GroupInfoError, find_group_infos, read_group_info
from chaos.plan.model import Plan

EXPECTED = f"{GROUP_INFO} of every rank names the ranks of its replica group"


def judge_groups(plan: Plan, artifacts: Artifacts, collector: Collector) -> None:
    """Compare every file that the job left with the plan's replica groups. Says nothing where none is written."""
    files = artifacts.search(find_group_infos)
    if not files and not plan.layout.group_info:
        return
    groups = {rank: group for group in plan.layout.replica_groups for rank in group}
    named_ranks: set[int] = set()
    for rank, path in sorted(files.items()):
        where = artifacts.relative(path)
        try:
            named = read_group_info(path).restore_ranks
        except GroupInfoError as error:
            collector.fail(EXPECTED, f"the file of rank {rank} {error.problem}", where, data=about(rank, file=where))
            continue
        named_ranks.update(named)
        if rank not in groups:
            collector.fail(
                EXPECTED,
                f"there is a file of rank {rank}, which the job does not have",
                where,
                data=about(rank, file=where),
            )
        elif named != groups[rank]:
            observation = (
                f"the file of rank {rank} names {list(named[:8])}, its replica group is {list(groups[rank][:8])}"
            )
            collector.fail(EXPECTED, observation, where, data=about(rank, file=where))
    for rank in groups:
        if rank not in files and not _taken(plan, rank, named_ranks):
            collector.unknown(EXPECTED, f"there is no file of rank {rank}", "job", data=about(rank))
    collector.settle(EXPECTED, f"{len(files)} files do", *(artifacts.relative(path) for path in files.values()))


def _taken(plan: Plan, rank: int, named_ranks: set[int]) -> bool:
    """Return whether a fault took the rank's files; then a replica's file must name the rank, if one is left."""
    lost = {victim for fault in plan.faults if fault.effect.damages == "files" for victim in fault.ranks}
    group = next(group for group in plan.layout.replica_groups if rank in group)
    return rank in lost and (rank in named_ranks or lost.issuperset(group))
