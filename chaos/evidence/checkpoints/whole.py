"""Whether a checkpoint holds everything that its rank held, by the names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chaos.evidence.checkpoints.parameters import is_appended, is_flag
from chaos.observe.checkpoints.layout import FoundCheckpoint
from chaos.observe.checkpoints.mindformers_layout import ITERATION
from chaos.observe.checkpoints.saved_state import SavedState

_WEIGHTS_ONLY = frozenset({"checkpoint_network", "checkpoint_trainable"})
"""Where MindFormers saves weights beside its checkpoints (save_network_params, save_trainable_params)."""

_OF_WEIGHTS = re.compile(r".+-(?:network|trainable_params)-\d+_\d+\.[^/]+")
"""What it calls them."""

_SCALING = frozenset({"scale_sense", "current_iterator_step", "last_overflow_iterator_step"})
"""The loss scale of the training cell, which is neither the network's nor the optimizer's: in MindFormers' new layout
no file of a rank holds it (seen with 2.1.0)."""


def lacking(file: FoundCheckpoint, state: SavedState, names: Iterable[str]) -> list[str]:
    """Which of a rank's parameters, weights and optimizer state, its file does not hold although it has to, in order.

    Nothing is asked of a file that says of itself that it leaves out what other ranks save, nor of one of weights only.
    """
    if state.partial or is_of_weights(file):
        return []
    elsewhere = _SCALING if ITERATION.fullmatch(file.path.parent.name) else frozenset()
    return sorted(
        name
        for name in set(names) - set(state.digests)
        if not (is_flag(name) or is_appended(name) or name in elsewhere)
    )


def is_of_weights(file: FoundCheckpoint) -> bool:
    """Return whether it is one of the files of weights only that MindFormers saves beside its checkpoints."""
    return bool(_WEIGHTS_ONLY.intersection(file.path.parts) or _OF_WEIGHTS.fullmatch(file.path.name))


def is_converted(file: FoundCheckpoint) -> bool:
    """Return whether MindFormers takes the parameters of such a file through numpy, which has no bfloat16
    (save_trainable_params; core/callback/callback.py, 2.1)."""
    return "checkpoint_trainable" in file.path.parts or "-trainable_params-" in file.path.name


def unequal(state: SavedState, theirs: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the parameters that a file and the digests of a rank both have, and those of them that differ."""
    shared = [name for name in state.digests if name in theirs and not (is_flag(name) or is_appended(name))]
    return shared, sorted(name for name in shared if theirs[name] != state.digests[name])


def holds(file: FoundCheckpoint, state: SavedState, theirs: Mapping[str, str]) -> bool:
    """Whether a file is what a rank held when it recorded these digests: all of it that it has to hold, bit for bit."""
    shared, different = unequal(state, theirs)
    return bool(shared) and not different and not lacking(file, state, theirs)
