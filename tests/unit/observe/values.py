"""The values of a tensor, whole: test files are small."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.observe.checkpoints.checkpoint import Checkpoint
from chaos.observe.checkpoints.values import value_blocks


def values(checkpoint: Checkpoint, name: str) -> NDArray[Any]:
    """All values of a tensor, in its shape."""
    blocks = [block.copy() for block in value_blocks(checkpoint, name)]
    whole: NDArray[Any] = np.concatenate(blocks).reshape(checkpoint.tensors[name].shape)
    return whole
