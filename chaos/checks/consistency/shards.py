"""Part of check ``consistency``: the ranks hold the state, or shards of it, as the plan says.

PyTorch's DTensors say which ranks hold the same shards, and the agent records it (``state.sharded``). Only these ranks
must agree. A plan of another layout than the job blames no component.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chaos.evidence.checkpoints.parameters import is_slot, is_weight
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, digests, ranks_text
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

SHARDED = "state.sharded"
EXPECTED = "the ranks hold the state, or shards of it, as cluster.parallel says"


@dataclass(frozen=True)
class Shards:
    """The ranks' own records of an attempt: which ranks hold the same shards, and whose optimizer keeps a part only."""

    holders: Mapping[int, frozenset[int]]
    own_slots: frozenset[int]
    events: Mapping[int, Event]

    def alike(self, group: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the parts of a replica group whose ranks hold the same shards; the group where nothing is recorded."""
        parts: dict[frozenset[int] | None, list[int]] = {}
        for rank in group:
            parts.setdefault(self.holders.get(rank), []).append(rank)
        return [tuple(ranks) for ranks in parts.values()]


@dataclass(frozen=True)
class Contradiction:
    """A statement of the plan about shards that the ranks' records contradict, with what to write."""

    text: str
    ranks: tuple[int, ...]
    where: tuple[str, ...]


def recorded_shards(history: History, attempt: str) -> Shards:
    """Return the last record of each rank."""
    events = {event.rank: event for event in history.select(SHARDED, attempt=attempt) if event.rank is not None}
    return Shards(
        {
            rank: frozenset(held)
            for rank, event in events.items()
            if isinstance(held := event.data.get("holders"), list)
        },
        frozenset(rank for rank, event in events.items() if event.data.get("optimizer") is True),
        events,
    )


def unshared_slots(plan: Plan, shards: Shards, events: Mapping[int, Event]) -> frozenset[str]:
    """Return the optimizer's state for single weights, where each rank keeps that of some weights only."""
    if plan.layout.shard != "optimizer" and not shards.own_slots:
        return frozenset()
    return frozenset(name for event in events.values() for name in event.data.get("parameters") or {} if is_slot(name))


def judge_shards(plan: Plan, history: History, collector: Collector) -> None:
    """Compare the plan with the records. Says nothing where neither speaks of shards."""
    attempts = (TRAIN, RESUME) if plan.resume.resumes else (TRAIN,)
    for attempt in attempts:
        for found in contradictions(plan, history, attempt):
            collector.unknown(EXPECTED, found.text, *found.where, data=about(found.ranks))
        _judge_recorded(plan, history, attempt, collector)
    recorded = [shards for attempt in attempts if (shards := recorded_shards(history, attempt)).events]
    if recorded:
        places = [event.source for shards in recorded for event in shards.events.values()]
        collector.settle(EXPECTED, f"by the records of {len(recorded[0].events)} ranks", *places[:5])


def _judge_recorded(plan: Plan, history: History, attempt: str, collector: Collector) -> None:
    """Judge that every rank that has trained says which ranks hold its shards, where any rank does.

    Where each rank has shards of its own, nothing else shows that any rank holds some.
    """
    if plan.layout.shard == "full" and not history.select("initial", attempt=attempt):
        collector.unknown(EXPECTED, f"no rank has recorded in attempt {attempt} what it holds")
    holders = recorded_shards(history, attempt).holders
    silent = sorted(set(digests(history, attempt)) - set(holders)) if holders else []
    if silent:
        observation = f"{ranks_text(silent)} has not recorded which ranks hold the same shards in attempt {attempt}"
        collector.unknown(EXPECTED, observation, data=about(silent))


def contradictions(plan: Plan, history: History, attempt: str) -> Iterator[Contradiction]:
    """Yield what the plan says otherwise than the ranks' records of an attempt."""
    shards = recorded_shards(history, attempt)
    group_of = {rank: group for group in plan.layout.replica_groups for rank in group}
    apart = [rank for rank, held in sorted(shards.holders.items()) if held != frozenset(group_of.get(rank, ()))]
    if apart:
        held = shards.holders[apart[0]]
        shared = f"rank {apart[0]} alone holds its" if len(held) == 1 else f"{ranks_text(sorted(held))} hold the same"
        planned = sorted(group_of.get(apart[0], (apart[0],)))
        by_plan = "no other rank does" if len(planned) == 1 else f"{ranks_text(planned)} hold the same state"
        text = f"{shared} shards of the state, and by the plan {by_plan}: {_remedy(plan, shards)}"
        yield Contradiction(text, tuple(apart), tuple(shards.events[rank].source for rank in apart[:5]))
    if shards.own_slots and plan.layout.shard == "none":
        ranks = tuple(sorted(shards.own_slots))
        text = (
            f"the optimizer of rank {ranks[0]} keeps the state of some weights only, and by the plan each rank keeps "
            "all of it: write cluster.parallel.shard: optimizer"
        )
        yield Contradiction(text, ranks, tuple(shards.events[rank].source for rank in ranks[:5]))
    if plan.layout.shard == "full" and not shards.holders:
        yield from _whole_after_all(plan, history, attempt)


def _remedy(plan: Plan, shards: Shards) -> str:
    """Return what to write; where copies alone do not make the groups, that the mesh is another one."""
    sizes = {len(held) for held in shards.holders.values()}
    copies = sizes.pop() if len(sizes) == 1 else None
    if copies is None or (plan.layout.shard == "full" and copies == len(plan.layout.replica_groups[0])):
        return "the mesh of the job is another one than cluster.parallel says"
    written = f" and cluster.parallel.copies: {copies}" if copies > 1 else ""
    if plan.layout.shard == "full":
        return f"write cluster.parallel.copies: {copies}"
    return f"write cluster.parallel.shard: full{written}"


def _whole_after_all(plan: Plan, history: History, attempt: str) -> Iterator[Contradiction]:
    """Yield that all ranks hold the same weights although the plan spreads these over the ranks."""
    states = {
        rank: by_step[max(by_step)]
        for rank, by_step in digests(history, attempt).items()
        if by_step and rank < plan.layout.ranks
    }
    if len(states) < 2 or len({event.data.get("step") for event in states.values()}) > 1:
        return
    weights = [
        {name: digest for name, digest in (event.data.get("parameters") or {}).items() if is_weight(name)}
        for event in states.values()
    ]
    if weights[0] and all(held == weights[0] for held in weights[1:]):
        text = (
            f"{ranks_text(sorted(states))} hold the same weights, and by the plan each holds shards of its own: write "
            "cluster.parallel.shard: none, or optimizer where only the optimizer's state is sharded"
        )
        yield Contradiction(text, tuple(sorted(states)), tuple(event.source for event in states.values())[:5])
