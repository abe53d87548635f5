"""Part of check ``mechanism``: two groups that no fault hit never train the same batch in one step.

How the groups go through their data after a loss is the script's own affair, and a group that is back may begin anew.
But groups that train on in their processes take their batches side by side, as in the fault-free run. Where no two
groups share a batch there, two of these that do count its samples twice. Batches that were trained again are stated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, digests
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.ft.plan import NAME
from chaos.mechanisms.ft.votes import committed_by_step
from chaos.plan.describe import count
from chaos.plan.model import Plan

APART = "groups that no fault hit train different batches in each step, as in the fault-free run"

_Batches = Mapping[int, Mapping[int, Event]]
"""The digests of each group by step."""


def judge_batches(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the committed steps. Says nothing where FT answers no fault, or the fault-free run shows no batches."""
    hit = {rank for recovery in plan.response.recoveries if recovery.mechanism == NAME for rank in recovery.copied}
    if not hit or artifacts.baseline is None:
        return
    theirs, ours = digests(artifacts.baseline, TRAIN), digests(history, TRAIN)
    going_on = [rank for rank in range(plan.layout.ranks) if rank not in hit]
    if len(going_on) < 2 or not _has_batches(theirs, going_on) or any(_shared(theirs, going_on)):
        return
    line = line_of(plan, "mechanism")
    counts = {
        (rank, step)
        for step, votes in committed_by_step(history).items()
        for rank, vote in votes.items()
        if vote.data.get("contributes") is True
    }
    counted = {
        rank: {step: event for step, event in ours.get(rank, {}).items() if (rank, step) in counts}
        for rank in range(plan.layout.ranks)
    }
    for rank in going_on:
        for step, event in counted[rank].items():
            if not event.data.get("batch"):
                text = f"the batch of rank {rank} in step {step} is not recorded"
                collector.unknown(APART, text, line, event.source, data=about(rank, step=step))
    for step, first, second in _shared(counted, going_on):
        text = f"ranks {first.rank} and {second.rank} trained the same batch in step {step}"
        data = about((first.rank or 0, second.rank or 0), step=step, quantity="batch", seen=first.data.get("batch"))
        collector.fail(APART, text, line, first.source, second.source, data=data)
    collector.settle(APART, f"{count(len(going_on), 'group')} do; {_again(counted)}", line)


def _has_batches(recorded: _Batches, ranks: list[int]) -> bool:
    return all(any(event.data.get("batch") for event in recorded.get(rank, {}).values()) for rank in ranks)


def _shared(recorded: _Batches, ranks: list[int]) -> Iterator[tuple[int, Event, Event]]:
    """Yield the steps in which two of the groups trained the same batch."""
    for one, other in combinations(ranks, 2):
        for step in sorted(recorded.get(one, {}).keys() & recorded.get(other, {}).keys()):
            first, second = recorded[one][step], recorded[other][step]
            if first.data.get("batch") and first.data.get("batch") == second.data.get("batch"):
                yield step, first, second


def _again(counted: _Batches) -> str:
    """Return in words how many batches were trained more than once, by any groups."""
    times = Counter(event.data.get("batch") for steps in counted.values() for event in steps.values())
    del times[None]
    more = sum(number > 1 for number in times.values())
    return f"of {len(times)} batches of all groups {more or 'none'} {'were' if more > 1 else 'was'} trained again"
