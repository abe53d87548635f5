"""The votes of the replica groups on each step, as the agents record them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from chaos.evidence.facts import TRAIN
from chaos.history.event import Event
from chaos.history.reader import History

VOTE = "step.voted"
"""Recorded by the agent when ``Manager.should_commit`` has returned."""


def votes(history: History) -> list[Event]:
    """Return all votes of the faulted launch, in their order."""
    return sorted(history.select(VOTE, attempt=TRAIN), key=lambda event: event.mono)


def committed_after(history: History, begin: int) -> list[Event]:
    """Return the votes since then by which a step counts."""
    return [vote for vote in votes(history) if vote.mono >= begin and vote.data.get("committed") is True]


def committed_by_step(history: History) -> Mapping[int, Mapping[int, Event]]:
    """Return the committed votes by step and group; the last one of a group counts."""
    by_step: dict[int, dict[int, Event]] = defaultdict(dict)
    for vote in votes(history):
        step = vote.data.get("step")
        if vote.data.get("committed") is True and isinstance(step, int) and vote.rank is not None:
            by_step[step][vote.rank] = vote
    return dict(sorted(by_step.items()))
