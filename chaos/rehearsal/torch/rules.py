"""What a rehearsal of PyTorch cannot show: refused in the plan."""

from __future__ import annotations

from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import SAVING, switched_on
from chaos.scenario.models.scenario import Scenario

_MASTER = "--enable-high-availability"


def check(draft: Draft, problems: Problems) -> None:
    """Note what the loop, its device or MindIO TFT in PyTorch mode cannot do."""
    _check_switches(draft.scenario, problems)
    _check_cluster(draft, problems)


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
    if scenario.job.controller != "rank 0":
        problems.add(
            "job.controller",
            "MindSpeed-LLM has the controller of MindIO TFT in rank 0, unless a cluster's agent hosts it",
            text=scenario.job.controller,
            hint="leave controller out",
        )
