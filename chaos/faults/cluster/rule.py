"""Part of check ``mechanism``: a recovery that keeps processes in their place keeps their pods.

A cluster that gives up such a recovery reschedules the pod instead; the job trains on, later than promised.
"""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.pods import PodFate, pod_fates
from chaos.evidence.recovery_windows import chains
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import Recovery
from chaos.plan.recovery.mechanism import REPLACING
from chaos.plan.recovery.registry import Names

_IN_PLACE = "recover-in-place"
_KEEPS = Names(lambda mechanism: not (mechanism.starts_ranks or mechanism.ends_launch))
"""Mechanisms with which every rank keeps its process."""


def judge_kept_pods(plan: Plan, history: History, collector: Collector) -> None:
    """Judge the pods of each recovery that promises to keep them; ignore a job that did not run in pods."""
    line = line_of(plan, "mechanism")
    fates = pod_fates(plan, history)
    known = {fault.id: fault for fault in plan.faults}
    for number in sorted({fate.recovery for fate in fates}):
        recovery_fates = [fate for fate in fates if fate.recovery == number]
        chain = chains(plan)[number - 1]
        faults = [known[name] for name in chain[0].faults if name in known]
        kept = [fate for fate in recovery_fates if _is_kept(plan, fate.node, chain, faults)]
        if not kept:
            continue
        names = ", ".join(dict.fromkeys(recovery.mechanism for recovery in chain))
        nodes = ", ".join(str(fate.node) for fate in kept)
        expected = f"recovery {number} by {names} keeps the pods of nodes {nodes}"
        for fate in kept:
            if fate.what == "unknown":
                collector.unknown(
                    expected, f"node {fate.node}: {fate.why}", line, *fate.where, data=about(nodes=fate.node)
                )
            elif fate.what != "untouched":
                collector.fail(expected, _fate_text(fate), line, *fate.where, data=about(nodes=fate.node))
        collector.settle(expected, "it did", line)


def _fate_text(fate: PodFate) -> str:
    """Return the fate of a pod, in words."""
    words = {"replaced": "was replaced", "restarted": "was started again in place", "ended": "ended"}
    return f"the pod of node {fate.node} {words.get(fate.what, fate.what)}: {fate.why}"


def _is_kept(plan: Plan, node: int, chain: list[Recovery], faults: list[PlannedFault]) -> bool:
    each = plan.layout.ranks // plan.layout.nodes
    ranks = set(range(node * each, (node + 1) * each))
    if any(effect_of(fault.kind).takes_pod and ranks.intersection(fault.ranks) for fault in faults):
        return False
    return all(recovery.mechanism in _KEEPS or _stays(plan, recovery, ranks, each) for recovery in chain)


def _stays(plan: Plan, recovery: Recovery, ranks: set[int], each: int) -> bool:
    """Return whether the pod of ``ranks`` stays in a replacement: a pod moves as a whole, or restarts in place."""
    if recovery.mechanism not in REPLACING:
        return False
    nodes = {rank // each for rank in recovery.restarted}
    return not ranks <= set(recovery.restarted) or (_IN_PLACE in plan.fault_tolerance.strategies and len(nodes) == 1)
