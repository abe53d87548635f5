"""The plan for the end of a node's whole part of a job: SIGKILL of its launcher, then of its ranks."""

from __future__ import annotations

from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.recovery.registry import mechanisms
from chaos.plan.schedule import Scheduled


def takes_launcher(fault: Scheduled) -> bool:
    """Return whether a fault ends the launcher of its ranks' node too."""
    return fault.fault.kind == "kill" and fault.fault.parameters.get("with") == "launcher"


def check_node_kill(draft: Draft, problems: Problems) -> None:
    """Note faults that take a launcher where there is none, or where other ranks of its node would live on."""
    for fault in filter(takes_launcher, draft.faults):
        objection = _objection(draft, fault)
        if objection is not None:
            message, hint = objection
            problems.add(f"{fault.path}.parameters.with", message, text="launcher", hint=hint)


def _objection(draft: Draft, fault: Scheduled) -> tuple[str, str] | None:
    """Return why the launcher cannot be hit with these ranks, or the end not be planned, and what to do."""
    cluster = draft.scenario.cluster
    each = cluster.ranks // cluster.nodes
    nodes = [set(range(node * each, (node + 1) * each)) for node in range(cluster.nodes)]
    struck = [ranks for ranks in nodes if ranks & set(fault.fault.ranks)]
    if fault.fault.role is not None:
        return "the fault hits a process beside the ranks, and has no launcher with it", "leave it out"
    if cluster.nodes == 1 or draft.platform.one_launcher:
        return "one launcher starts all ranks, so that nothing of the job would be left", "use a job of several nodes"
    if not draft.traits.launcher_restarts or draft.scenario.job.command is not None:
        return "the launcher of this job may have ended when it has started the ranks", "use the job kind torch"
    if not any(mechanisms()[name].of_launcher for name in draft.scenario.job.protection):
        return "nothing says what the launchers of the other nodes do then", "switch ELASTIC on, or leave it out"
    if any(ranks - set(fault.fault.ranks) for ranks in struck):
        return "other ranks of the node would train on without a launcher", "give the target as node: N"
    if len(struck) == len(nodes):
        return "it takes every node, so that nothing of the job would be left", "give the target as node: N"
    return None
