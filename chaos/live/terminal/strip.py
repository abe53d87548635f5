"""Ranks as a strip: a letter for each rank, or for each group where there are many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from rich.text import Text

from chaos.live.groups import MOST_RANKS
from chaos.live.state import LETTERS, GroupState, LiveState, RankState

_STYLES: Mapping[str, str] = MappingProxyType(
    {
        "not started": "dim",
        "starting": "cyan",
        "loading": "cyan",
        "training": "green",
        "held": "yellow",
        "faulted": "bold red",
        "stopped": "yellow",
        "saving": "blue",
        "repairing": "magenta",
        "trained": "green",
        "ended": "dim",
        "ended by fault": "red",
        "ended unplanned": "bold red reverse",
        "not recorded": "dim",
    }
)

_FIRST = (
    *("ended unplanned", "faulted", "ended by fault", "repairing", "saving", "stopped", "held"),
    *("loading", "starting", "not started", "training", "trained", "ended", "not recorded"),
)
"""The states of a group's ranks, that which a reader has to see before the others."""


def letter(state: str) -> Text:
    """Return the letter of a state in its colour."""
    return Text(LETTERS.get(state, "?"), style=_STYLES.get(state, ""))


def strip(state: LiveState) -> Text:
    """Return the ranks of a run as a strip; of many ranks their groups, each by the state to be seen first."""
    if len(state.ranks) > MOST_RANKS:
        return Text().join(letter(_first_of(group)) for group in state.groups)
    return Text().join(_with_gaps(state.ranks))


def letters(states: Sequence[str]) -> Text:
    """Return states as a strip; of many, blocks of neighbours, each by the state to be seen first."""
    each = -(-len(states) // MOST_RANKS) or 1
    blocks = [set(states[first : first + each]) for first in range(0, len(states), each)]
    return Text().join(letter(next((state for state in _FIRST if state in block), "not recorded")) for block in blocks)


def subject(state: LiveState) -> str:
    """Return the meaning of a letter of the strip."""
    if len(state.ranks) <= MOST_RANKS:
        return "ranks"
    kinds = {group.kind for group in state.groups}
    return "groups" if len(kinds) != 1 or kinds == {"ranks"} else f"{kinds.pop()}s"


def legend(states: Mapping[str, int]) -> Text:
    """Return each state with its letter, its name and the number of its ranks."""
    return Text("  ").join(
        Text.assemble(letter(state), " ", (state, _STYLES.get(state, "")), f" {count}")
        for state, count in states.items()
    )


def _with_gaps(ranks: Sequence[RankState]) -> Iterable[Text]:
    """Yield the letters, with a gap between two replica groups of neighbours."""
    neighbours = _in_blocks(ranks)
    for number, rank in enumerate(ranks):
        if neighbours and number and rank.group != ranks[number - 1].group:
            yield Text(" ")
        yield letter(rank.state)


def _in_blocks(ranks: Sequence[RankState]) -> bool:
    """Return whether the ranks of each replica group are neighbours, and no group is of one rank."""
    borders = sum(before.group != rank.group for before, rank in pairwise(ranks))
    groups = len({rank.group for rank in ranks})
    return borders == groups - 1 and groups < len(ranks)


def _first_of(group: GroupState) -> str:
    return next((state for state in _FIRST if group.states.get(state)), "not recorded")
