"""Part of check ``consistency``: MindSpore gave the SDK the replicas of the plan.

MindSpore takes them from the compiled graph (``Set TFT replica with dp: (0, 2).``, its callback
``_train_fault_tolerance.py``, 2.10), and knows nothing of the plan. The plan may have another layout then, which blames
no component.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN
from chaos.evidence.statement_data import about
from chaos.plan.model import Plan

EXPECTED = "MindSpore gives the SDK the replica groups of the plan"


def judge_replicas(plan: Plan, artifacts: Artifacts, collector: Collector) -> None:
    """Compare every rank's line with the rank's replica group. Says nothing where there is none."""
    lines = [
        (rank, group, event)
        for attempt in (TRAIN, RESUME)
        for group in plan.layout.replica_groups
        for rank in group
        for event in artifacts.signs(attempt, rank)
        if event.kind == "tft.replicas"
    ]
    for rank, group, event in lines:
        ranks = event.fields["dp"]
        if set(ranks) != set(group):
            observation = f"rank {rank} is given {_some(ranks)}, and its replica group in the plan is {_some(group)}"
            collector.unknown(
                EXPECTED,
                f"{observation}: the plan may be of another layout than the job",
                event.source,
                data=about(rank),
            )
    if lines:
        collector.settle(EXPECTED, f"in {len(lines)} lines", *(event.source for *_, event in lines[:5]), by_log=True)


def _some(ranks: Sequence[int]) -> str:
    """Return at most eight ranks as they are written, since a line may be damaged."""
    return str([*ranks[:8], "…"] if len(ranks) > 8 else list(ranks))
