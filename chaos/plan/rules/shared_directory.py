"""The directory that MindFormers goes on from: all nodes must share it, and the run names it."""

from __future__ import annotations

from chaos.plan.draft import Draft
from chaos.plan.problems import Problems

SHARED_PATHS = "SHARED_PATHS"
"""The variable that tells MindFormers which directories all nodes share."""


def check_shared(draft: Draft, problems: Problems) -> None:
    """Note a job that goes by its records, where its ranks would not see each other's records.

    Source: Resumable Training After Breakpoint, notes: the weights of all nodes in one shared directory, which
    ``SHARED_PATHS`` names. A run sets it (chaos.jobs.mindformers.job).
    """
    scenario, traits = draft.scenario, draft.traits
    if not traits.restarts or not draft.faults or not scenario.job.resume:
        return
    if traits.rank_directories and draft.platform.own_files and scenario.cluster.nodes > 1:
        problems.add(
            "cluster.platform",
            "MindFormers goes on from a directory that all nodes share, and on the platform "
            f"{scenario.cluster.platform} each host has a copy: the ranks of other hosts do not see the checkpoint "
            "that rank 0 chooses",
            text=scenario.cluster.platform,
            hint="use nodes: 1, a platform with one file system, or job.resume: false",
        )
    if SHARED_PATHS in scenario.job.environment:
        problems.add(
            f"job.environment.{SHARED_PATHS}",
            f"{SHARED_PATHS} here replaces the run's own value, without which a job of more than 8 ranks ignores its "
            "records",
            text=SHARED_PATHS,
            hint="set it in the shell that calls chaos: the run adds its own to that",
        )
