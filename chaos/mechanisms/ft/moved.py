"""Part of check ``mechanism``: a committed step changes the state, on every group.

After a fault no state is compared with the fault-free run's, and groups that all stand still agree with each other. So
where the fault-free run's weights or moments change between two steps, those of the run must change as well. A step
whose update a scaler of gradients has left out changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import at_baseline
from chaos.evidence.checkpoints.parameters import is_slot, is_step_counter, is_weight
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, digests, step_of
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import STATE, about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.ft.plan import NAME
from chaos.mechanisms.ft.votes import committed_by_step
from chaos.plan.describe import count
from chaos.plan.model import Plan

MOVED = "the steps that a group commits change its weights and moments, as in the fault-free run"


def _is_moment(name: str) -> bool:
    """Return whether the optimizer moves it by gradients; its count of updates tells nothing about them."""
    return is_slot(name) and not is_step_counter(name)


_PARTS: tuple[tuple[str, Callable[[str], bool]], ...] = (("weight", is_weight), ("moment", _is_moment))


def judge_moved(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the states of the faulted launch. Says nothing where FT is off, or without a fault-free run."""
    if NAME not in plan.fault_tolerance.protection or artifacts.baseline is None:
        return
    line, states, theirs = line_of(plan, "mechanism"), digests(history, TRAIN), digests(artifacts.baseline, TRAIN)
    compared = 0
    for rank in range(plan.layout.ranks):
        good = theirs.get(rank, {})
        for before, after in _committed(history, rank, states.get(rank, {})):
            first, last = step_of(before), step_of(after)
            if first not in good or last not in good:
                continue
            compared += 1
            still = [
                what
                for what, belongs in _PARTS
                if _part(good[first], belongs) != _part(good[last], belongs)
                and _part(before, belongs) == _part(after, belongs) != {}  # what is not recorded is said elsewhere
            ]
            if still:
                text = f"no {' and no '.join(still)} of rank {rank} changed from step {first} to step {last}"
                where = (before.source, after.source, at_baseline(good[last]))
                collector.fail(MOVED, text, line, *where, data=about(rank, step=last, quantity=STATE))
                break
    if not compared:
        collector.unknown(
            MOVED, "no states after two committed steps are recorded here and in the fault-free run", line
        )
    collector.settle(MOVED, f"{count(compared, 'change')}, on {count(plan.layout.ranks, 'group')}", line)


def _committed(history: History, rank: int, states: Mapping[int, Event]) -> Iterator[tuple[Event, Event]]:
    """Yield each two successive states of a group between which it has committed steps that all have an update."""
    committed = {step for step, votes in committed_by_step(history).items() if rank in votes}
    left_out = {step_of(event) for event in history.select("update.left_out", attempt=TRAIN, rank=rank)}
    for before, after in pairwise(sorted(states)):
        between = range(before + 1, after + 1)
        if committed.issuperset(between) and left_out.isdisjoint(between):
            yield states[before], states[after]


def _part(state: Event, belongs: Callable[[str], bool]) -> dict[str, object]:
    return {name: digest for name, digest in (state.data.get("parameters") or {}).items() if belongs(name)}
