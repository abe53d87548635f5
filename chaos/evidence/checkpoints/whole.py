"""Whether a checkpoint holds everything that its rank held, by the names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chaos.evidence.checkpoints.parameters import is_appended, is_flag, is_of_no_module
from chaos.evidence.checkpoints.sharded import as_held
from chaos.observe.checkpoints.layout import CheckpointFile
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.saved_state import SavedState

_WEIGHTS_ONLY = frozenset({"checkpoint_network", "checkpoint_trainable"})
"""The directories in which MindFormers saves weights beside its checkpoints (save_network_params,
save_trainable_params)."""

_OF_WEIGHTS = re.compile(r".+-(?:network|trainable_params)-\d+_\d+\.[^/]+")
"""MindFormers' names for these files."""

_SCALING = frozenset({"scale_sense", "current_iterator_step", "last_overflow_iterator_step"})
"""The loss scale of the training cell, which is neither the network's nor the optimizer's: in MindFormers' new layout
no file of a rank holds it (seen with 2.1.0)."""


def lacking(file: CheckpointFile, state: SavedState, names: Iterable[str]) -> list[str]:
    """Return the parameters of a rank, weights and optimizer state, that its file lacks although it has to hold them.

    Nothing is required of a file that declares that it leaves out other ranks' parameters, nor of a file of weights
    only. A weight of no module may be a copy that the optimizer makes anew.
    """
    if state.partial or is_of_weights(file):
        return []
    elsewhere = _SCALING if ITERATION.fullmatch(file.path.parent.name) else frozenset()
    return sorted(
        name
        for name in set(names) - set(state.digests)
        if not (is_flag(name) or is_appended(name) or is_of_no_module(name) or name in elsewhere)
    )


def is_of_weights(file: CheckpointFile) -> bool:
    """Return whether it is a file of weights only that MindFormers saves beside its checkpoints."""
    return bool(_WEIGHTS_ONLY.intersection(file.path.parts) or _OF_WEIGHTS.fullmatch(file.path.name))


def is_converted(file: CheckpointFile) -> bool:
    """Return whether MindFormers takes the parameters of such a file through numpy, which has no bfloat16.

    Source: save_trainable_params; core/callback/callback.py, 2.1.
    """
    return "checkpoint_trainable" in file.path.parts or "-trainable_params-" in file.path.name


def unequal(state: SavedState, theirs: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the parameters that a file and the digests of a rank both have, and the ones that differ."""
    shared = [name for name in state.digests if name in theirs and not (is_flag(name) or is_appended(name))]
    return shared, sorted(name for name in shared if theirs[name] != state.digests[name])


def holds(file: CheckpointFile, state: SavedState, theirs: Mapping[str, str]) -> bool:
    """Return whether a file equals a rank's recorded digests, bit for bit, in everything that it has to hold."""
    state = as_held(state, file.rank, theirs) if file.rank is not None else state
    shared, different = unequal(state, theirs)
    return bool(shared) and not different and not lacking(file, state, theirs)
