"""The sizes and options that a job of torchft can have, checked in the plan."""

from __future__ import annotations

from chaos.plan.draft import Draft
from chaos.plan.problems import Problems

MOST_GROUPS = 16


def check_groups(draft: Draft, problems: Problems) -> None:
    """Note sizes that this version does not run: each replica group is one process, and holds the whole state."""
    scenario, layout = draft.scenario, draft.layout
    if layout.shards > 1 or layout.model > 1:
        problems.add(
            "cluster.parallel",
            "a replica group of job kind 'torchft' is one process with the whole state: groups of several processes, "
            "as HSDP has them, are not yet run by this version",
            hint="leave cluster.parallel out: cluster.ranks is the number of replica groups",
        )
    if scenario.cluster.nodes > 1:
        problems.add(
            "cluster.nodes",
            "the launcher of job kind 'torchft' starts every replica group on this host",
            text=str(scenario.cluster.nodes),
            hint="use nodes: 1",
        )
    if scenario.job.torchft.min_groups > scenario.cluster.ranks:
        problems.add(
            "job.torchft.min_groups",
            f"there are {scenario.cluster.ranks} replica groups, so these many never come together",
            text=str(scenario.job.torchft.min_groups),
            hint=f"use {scenario.cluster.ranks} at most",
        )
