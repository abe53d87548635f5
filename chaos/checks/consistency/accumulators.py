"""Accumulated gradients of single ranks: a job that reduces them only for an update has others on every rank.

The fault-free run shows this, or the run before the first fault: there the ranks of a replica group differ in nothing
else.
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.parameters import is_accumulated
from chaos.evidence.facts import TRAIN, digests
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan


def unshared_accumulators(plan: Plan, history: History, artifacts: Artifacts) -> frozenset[str]:
    """Return names of the accumulated gradients in which the ranks of a replica group differ without a fault."""
    if artifacts.steps_per_update == 1:
        return frozenset()
    first = min((event.mono for event in history.select("fault.injecting")), default=None)
    if artifacts.baseline is not None:
        history, first = artifacts.baseline, None
    states = digests(history, TRAIN)
    return frozenset(
        name
        for group in plan.layout.replica_groups
        for rank in group[1:]
        for step, event in states.get(rank, {}).items()
        if first is None or event.mono < first
        for name in _differing(event, states.get(group[0], {}).get(step))
    )


def _differing(event: Event, other: Event | None) -> set[str]:
    ours, theirs = ((fact.data.get("parameters") if fact is not None else None) or {} for fact in (event, other))
    return {name for name in ours.keys() & theirs.keys() if is_accumulated(name) and ours[name] != theirs[name]}
