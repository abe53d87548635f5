"""Whether a checkpoint holds everything that its rank held, by the names."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.checks.parameters import is_appended, is_flag
from chaos.observe.layout import FoundCheckpoint
from chaos.observe.mindformers_layout import companion
from chaos.observe.saved_state import SavedState

_WEIGHTS_ONLY = frozenset({"checkpoint_network", "checkpoint_trainable"})
"""Where MindFormers saves weights beside its checkpoints (save_network_params, save_trainable_params)."""

_SCALING = frozenset({"scale_sense", "current_iterator_step", "last_overflow_iterator_step"})
"""The loss scale of the training cell, which is neither the network's nor the optimizer's: in MindFormers' new layout
no file of a rank holds it (seen with 2.1.0)."""


def lacking(file: FoundCheckpoint, state: SavedState, names: Iterable[str]) -> list[str]:
    """Which of a rank's parameters, weights and optimizer state, its file does not hold although it has to, in order.

    Nothing is asked of a file that says of itself that it leaves out what other ranks save, nor of one of weights only.
    """
    if state.partial or _WEIGHTS_ONLY.intersection(file.path.parts):
        return []
    elsewhere = _SCALING if companion(file.saved_as) is not None else frozenset()
    return sorted(
        name
        for name in set(names) - set(state.digests)
        if not (is_flag(name) or is_appended(name) or name in elsewhere)
    )
