"""Part of check ``hygiene``: a run with faults of a device leaves no card quarantined by the cluster."""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.facts import places, text_list
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan

EXPECTED = "no card is left quarantined by the cluster (ManuallySeparateNPU)"


def judge_quarantine(plan: Plan, history: History, collector: Collector) -> None:
    """Judge the quarantined cards before and after the run. Says nothing about a run without faults of a device."""
    if not any(effect_of(fault.kind).on_card for fault in plan.faults):
        return
    events = history.select("quarantine")
    if not events:
        collector.unknown(EXPECTED, "no check was made: the history has no quarantine event")
    elif len({str(event.data.get("node")) for event in events}) < plan.layout.nodes:
        collector.unknown(EXPECTED, f"no check was made of some of {plan.layout.nodes} nodes", *places(events))
    for event in events:
        before, after, node = event.data.get("before"), event.data.get("after"), str(event.data.get("node"))
        if not isinstance(before, list) or not isinstance(after, list):
            collector.unknown(EXPECTED, "the quarantine event names no cards", event.source)
            continue
        left = sorted({str(card) for card in after} - {str(card) for card in before})
        if left:
            observation = f"left quarantined: {text_list(left)} on {node}; {event.data.get('advice')}"
            collector.fail(
                EXPECTED,
                observation,
                event.source,
                data=about(nodes=event.data.get("node"), quantity="card", seen=text_list(left)),
            )
        elif event.data.get("known") is not True:
            collector.unknown(EXPECTED, f"the cluster could not be asked: {event.data.get('how')}", event.source)
    collector.settle(EXPECTED, "none is that was not before")
