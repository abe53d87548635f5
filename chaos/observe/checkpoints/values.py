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
from chaos.observe.checkpoints.parsed import Piece
from chaos.observe.checkpoints.tensor import STORAGE


def value_blocks(checkpoint: Checkpoint, name: str) -> Iterator[NDArray[Any]]:
    """Return the values of a tensor that lie in order, in blocks. A block is valid until the next is asked for.

    Values of a bfloat16 are its bits, as uint16. Raises KeyError when there is no such tensor, and
    CheckpointError when the file can no longer be read.
    """
    place, dtype = checkpoint.places[name], checkpoint.tensors[name].dtype
    return blocks_of(Piece(name, dtype, checkpoint.path, place))


def blocks_of(piece: Piece) -> Iterator[NDArray[Any]]:
    """Yield the values of a tensor at a place in a file, as :func:`value_blocks`. Raises CheckpointError."""
    try:
        with open_plain(piece.file) as stream:
            for block in BlockReader(stream).read(piece.place):
                yield np.frombuffer(block, STORAGE[piece.dtype])
    except UnreadableFile as error:
        raise CheckpointError(piece.file, str(error.strerror)) from error
    except (EOFError, OSError) as error:
        raise CheckpointError(piece.file, f"cannot be read: {error}") from error
