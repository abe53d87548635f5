"""The faults that a rehearsal of PyTorch cannot show, refused in the plan."""

from __future__ import annotations

from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import REPLACING, SAVING, switched_on
from chaos.scenario.models.scenario import Scenario

_MASTER = "--enable-high-availability"


def check(draft: Draft, problems: Problems) -> None:
    """Note what the loop, its device or MindIO TFT in PyTorch mode cannot do."""
    _check_switches(draft.scenario, problems)
    _check_cluster(draft, problems)
    _check_agent(draft, problems)


def _check_switches(scenario: Scenario, problems: Problems) -> None:
    on = switched_on(scenario.job.protection)
    saving = next(iter(SAVING))
    if on and SAVING.isdisjoint(on):
        problems.add(
            "job.protection",
            f"{', '.join(on)} without {saving}: MindSpeed-LLM switches nothing on without {_MASTER}, which switches "
            f"{saving} on",
            text=on[0],
            hint=f"add {saving}",
        )


def _check_cluster(draft: Draft, problems: Problems) -> None:
    scenario = draft.scenario
    if scenario.job.protection and draft.layout.data < 2:
        problems.add(
            "cluster.ranks",
            "no rank has a replica: data_parallel is 1",
            text=scenario.cluster.ranks,
            hint="use 2 ranks or more",
        )
    if scenario.cluster.nodes > 1:
        problems.add(
            "cluster.nodes",
            "a rehearsal of PyTorch on several nodes is not yet supported by this version",
            text=scenario.cluster.nodes,
            hint="leave nodes out",
        )
    if scenario.job.controller != "rank 0" and not scenario.job.agent:
        problems.add(
            "job.controller",
            "MindSpeed-LLM has the controller of MindIO TFT in rank 0, unless a cluster's agent hosts it",
            text=scenario.job.controller,
            hint="leave controller out",
        )


def _check_agent(draft: Draft, problems: Problems) -> None:
    """Note a replacement of processes that nobody could do, or that has no store to meet in."""
    scenario = draft.scenario
    replacing = [mechanism for mechanism in scenario.job.protection if mechanism in REPLACING]
    if replacing and not scenario.job.agent:
        problems.add(
            "job.agent",
            f"{replacing[0]} without a cluster's agent: torchrun itself starts no single rank again",
            hint="set job.agent: true",
        )
    if scenario.job.agent and scenario.job.torchrun.edited:
        problems.add(
            "job.torchrun.edited",
            "the cluster's agent controls the ranks in torchrun's place, which ends none by itself",
            text="true",
            hint="leave edited out, or leave agent out",
        )
    for fault in draft.faults:
        if replacing and fault.lethal and 0 in fault.fault.ranks:
            problems.add(
                f"{fault.path}.target",
                "the store in which a new process meets the others is in rank 0 (job.torchrun.store: own): a "
                "replacement of rank 0 is not yet supported by this version",
                text=ranks(fault.fault.ranks),
                hint="hit another rank",
            )
