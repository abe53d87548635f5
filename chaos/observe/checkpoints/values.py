"""The values of one tensor in a checkpoint file, for callers that need more than its description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.observe.checkpoints.blocks import BlockReader
from chaos.observe.checkpoints.checkpoint import Checkpoint
from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.tensor import STORAGE


def value_blocks(checkpoint: Checkpoint, name: str) -> Iterator[NDArray[Any]]:
    """Yield the values of a tensor that is not cut into slices, in order. A block is valid until the next is asked for.

    Values of a bfloat16 are its bits, as uint16. Raises KeyError when there is no such tensor, and
    CheckpointError when the file can no longer be read.
    """
    place, storage = checkpoint.places[name], STORAGE[checkpoint.tensors[name].dtype]
    try:
        with open_plain(checkpoint.path) as stream:
            for block in BlockReader(stream).read(place):
                yield np.frombuffer(block, storage)
    except UnreadableFile as error:
        raise CheckpointError(checkpoint.path, str(error.strerror)) from error
    except (EOFError, OSError) as error:
        raise CheckpointError(checkpoint.path, f"cannot be read: {error}") from error
