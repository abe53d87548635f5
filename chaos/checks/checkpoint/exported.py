"""Weights that a job exports behind its training (``save_checkpoint(network, "final.ckpt")``): no checkpoint to resume
from, so that nobody asks it for the optimizer's state.
"""

from __future__ import annotations

from chaos.evidence.checkpoints.owner import OwnedCheckpoint, before
from chaos.evidence.checkpoints.parameters import is_optimizer_state
from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState


def is_exported(file: OwnedCheckpoint, state: SavedState, history: History) -> bool:
    """Whether it was saved when its process's training had come to its end, under a name that counts no steps, and
    holds nothing of the optimizer at all.

    What a training saves while it goes on is there to go on from, whatever it leaves out.
    """
    if file.epoch is not None or file.made is None or any(map(is_optimizer_state, (*state.digests, *state.numbers))):
        return False
    begun, ended = (before(file.made, event, history) for event in ("train.begin", "train.end"))
    return begun is not None and ended is not None and ended.seq > begun.seq
