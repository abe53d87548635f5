"""Part of check ``mechanism``: ranks that a partition has taken from the job do nothing more for it.

They get no message that they are lost, so they may wait for the others as long as they like. They must not act as the
side that is left: save or rename as the chosen rank, or train on when the network is back.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, ranks_text, step_of
from chaos.evidence.injection.cut_off import ends_by_itself, is_cut_off
from chaos.evidence.injection.unresponsive import may_end
from chaos.evidence.scenario_line import scenario_line
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

_SAVES = ("save_ckpt", "rename")


def judge_cut_off(plan: Plan, history: History, collector: Collector) -> None:
    """Judge the ranks from the landing to their end. Ignores other plans."""
    for fault in plan.faults:
        landings = history.select("fault.landed", fault=fault.id)
        if is_cut_off(fault) and landings:
            _judge(history, fault, landings[0], collector)


def _judge(history: History, fault: PlannedFault, landing: Event, collector: Collector) -> None:
    who = ranks_text(fault.ranks)
    expected = f"{who}, cut off by {fault.id}, train no step alone, and neither save nor rename for the others"
    line = scenario_line(fault.line)
    endings = history.select("fault.ending", fault=fault.id, attempt=landing.attempt)
    shown = {entry.get("rank"): entry for entry in landing.data.get("evidence") or () if isinstance(entry, Mapping)}
    for rank in fault.ranks:
        events = history.select(attempt=TRAIN, rank=rank, writer="agent")
        later = [event for event in events if landing.surely_before(event)]
        for event in later:
            if event.event == "handler.enter" and event.data.get("name") in _SAVES:
                collector.fail(
                    expected,
                    f"handler {event.data['name']} was called on rank {rank}",
                    line,
                    event.source,
                    data=about(rank),
                )
            elif event.event == "checkpoint.begin" and event.data.get("kind") == "end-of-life":
                collector.fail(
                    expected, f"rank {rank} saved an end-of-life checkpoint", line, event.source, data=about(rank)
                )
        # Before the end a step would show that the partition did not hold, which makes it unproven (silence_doubts).
        for event in later if endings else ():
            behind = not event.surely_before(endings[0])
            if event.event == "step.end" and behind and not may_end(event, events, landing, shown.get(rank, {})):
                text = f"rank {rank} ended step {step_of(event)} when the network was back, without the others"
                collector.fail(expected, text, line, event.source, data=about(rank, step=step_of(event)))
    collector.settle(expected, "they did nothing of it", line, landing.source)
    _judge_ends(history, fault, endings, collector, line)


def _judge_ends(history: History, fault: PlannedFault, endings: list[Event], collector: Collector, line: str) -> None:
    """Judge the ends.

    Where the network comes back within the launch each rank ends by itself: a signal would be another's act.
    """
    if not ends_by_itself(fault) or not endings:
        return
    expected = f"{ranks_text(fault.ranks)} end by themselves when the network is back and no controller is found"
    for rank in fault.ranks:
        exits = history.select("rank.exit", attempt=TRAIN, rank=rank)
        if not exits:
            collector.unknown(expected, f"no exit of rank {rank} was recorded", line, data=about(rank))
        for event in exits:
            if event.data.get("signal") is not None:
                collector.fail(
                    expected,
                    f"rank {rank} had to be ended, by signal {event.data['signal']}",
                    line,
                    event.source,
                    data=about(rank),
                )
            elif event.surely_before(endings[0]):
                collector.fail(
                    expected, f"rank {rank} ended while it was still cut off", line, event.source, data=about(rank)
                )
    collector.settle(expected, "they did", line)
