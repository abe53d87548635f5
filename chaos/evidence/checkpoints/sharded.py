"""The state of one rank in a checkpoint, by the rank's own names, with its parts of parameters that ranks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chaos.evidence.checkpoints.several_networks import as_recorded
from chaos.observe.checkpoints.saved_state import NO_VALUE, SavedState


def as_held(
    state: SavedState, rank: int, theirs: Mapping[str, str], at_save: Mapping[str, str] | None = None
) -> SavedState:
    """Return a state with the digests that a rank should have recorded, by the rank's names.

    Of a parameter that is saved in parts, the rank holds the part that it has written. A rank that has written none, as
    one of several that hold the same part, may hold any of them. A rank that holds the whole parameter may hold that.
    Where a parameter is cut over more ranks than it has rows, a rank that has written none may hold no value of it.

    Args:
        state: the content of the checkpoint.
        rank: the rank.
        theirs: the digests that the rank has recorded, by the names of the parameters.
        at_save: those that it recorded when the checkpoint was saved, where these are others.
    """
    state = as_recorded(state, at_save or theirs)
    empty = [name for name in state.digests if theirs.get(name) == NO_VALUE]
    if not (state.shards or empty):
        return state
    digests = dict(state.digests)
    for name, parts in state.shards.items():
        recorded = theirs.get(name)
        if rank in parts and recorded != digests[name]:
            digests[name] = parts[rank]
        elif rank not in parts and recorded in parts.values():
            digests[name] = str(recorded)
    digests |= {name: NO_VALUE for name in empty if rank not in state.shards.get(name, ())}
    return replace(state, digests=digests)
