"""The stacks of the ranks that the harness took at a deadline."""

from __future__ import annotations

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.stack_words import EVENT, RankStacks, Without, stacks_of


def stacks_at(history: History, expired: Event) -> tuple[list[RankStacks], list[Without]]:
    """Return the stacks that were taken at a deadline, and the ranks without a stack; none in earlier runs."""
    taken = [event for event in history.select(EVENT, attempt=expired.attempt) if event.mono >= expired.mono]
    return stacks_of(taken[0].data) if taken else ([], [])
