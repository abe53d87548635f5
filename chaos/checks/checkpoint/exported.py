"""Weights that a job exports behind its training (``save_checkpoint(network, "final.ckpt")``).

They are no checkpoint to resume from, so no check asks them for the optimizer's state.
"""

from __future__ import annotations

from chaos.evidence.checkpoints.owner import OwnedCheckpoint, before
from chaos.evidence.checkpoints.parameters import is_optimizer_state
from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState


def is_exported(file: OwnedCheckpoint, state: SavedState, history: History) -> bool:
    """Return whether a file is an export: saved after its process's training, and without any optimizer state.

    Its name counts no steps. A file that a training saves while it goes on is there to go on from, whatever it leaves
    out.
    """
    if file.epoch is not None or file.made is None or any(map(is_optimizer_state, (*state.digests, *state.numbers))):
        return False
    begun, ended = (before(file.made, event, history) for event in ("train.begin", "train.end"))
    return begun is not None and ended is not None and ended.seq > begun.seq
