"""``flip-checkpoint``: flips one bit of the newest checkpoint of a rank.

``where: data`` (default) hits the highest mantissa bit of a weight's largest value: the file loads, and only a checksum
shows it. ``where: header`` hits the format mark: the file cannot be read.

On Ascend: storage or memory that silently changes a bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.base.plain_files import open_plain
from chaos.faults.checkpoints.checkpoint_damage import Damage
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.checkpoints.file_content import blocks
from chaos.faults.kind import FaultMissed, Victim
from chaos.observe.checkpoints.checkpoint import Checkpoint, CheckpointError, read_checkpoint
from chaos.observe.checkpoints.parsed import Piece
from chaos.observe.checkpoints.tensor import STORAGE
from chaos.observe.checkpoints.values import blocks_of

_MANTISSA_TOP = {"float16": 9, "bfloat16": 6, "float32": 22, "float64": 51}
"""The highest bit of the mantissa, counted from the lowest one of the value."""

_LENGTH_OF_HEADER = 8  # bytes of the header's length, at the start of a safetensors file


def flipped(hit: Hit, victim: Victim) -> Iterable[bytes]:
    """Yield the file with one bit flipped."""
    if victim.parameters.get("where", "data") == "header":
        at, bit = header_bit(hit.path)
    else:
        at, bit = data_bit(hit.path) if hit.whole is None else data_bit(hit.place or hit.path, hit.whole)
    return _with_flipped(hit.path, at, bit)


def header_bit(path: Path) -> tuple[int, int]:
    """Return byte and bit of the format mark: the first one of the file, or the bracket of safetensors' header."""
    with open_plain(path) as file:
        head = file.read(_LENGTH_OF_HEADER + 1)
    return (_LENGTH_OF_HEADER if head[_LENGTH_OF_HEADER:] == b"{" else 0), 0


def data_bit(path: Path, whole: Path | None = None) -> tuple[int, int]:
    """Return byte and bit of the largest value in the largest tensor of floats.

    ``whole`` is the checkpoint where ``path`` is a part of it. Raises FaultMissed where there is none.
    """
    try:
        pieces = [piece for piece in _pieces(read_checkpoint(whole or path), path) if piece.place.length]
    except CheckpointError as error:
        raise FaultMissed(f"{path} cannot be read: {error.problem}") from error
    if not pieces:
        raise FaultMissed(f"{path} holds no floating-point values that lie in order")
    piece = max(pieces, key=lambda piece: piece.place.length)
    index = _largest(piece)
    bit = _MANTISSA_TOP[piece.dtype]
    return piece.place.at + index * STORAGE[piece.dtype].itemsize + bit // 8, bit % 8


def _pieces(checkpoint: Checkpoint, path: Path) -> list[Piece]:
    """Return the places of floats in a file of a checkpoint."""
    places = [
        Piece(name, tensor.dtype, checkpoint.path, checkpoint.places[name])
        for name, tensor in checkpoint.tensors.items()
        if name in checkpoint.places
    ]
    return [piece for piece in (*places, *checkpoint.pieces) if piece.file == path and piece.dtype in _MANTISSA_TOP]


def _largest(piece: Piece) -> int:
    """Return the index of the first value of the largest magnitude."""
    position, largest, passed = 0, None, 0
    for block in blocks_of(piece):
        sizes = _magnitudes(piece.dtype, block)
        index = int(np.argmax(sizes))
        if largest is None or sizes[index] > largest:
            position, largest = passed + index, sizes[index]
        passed += len(block)
    return position


def _magnitudes(dtype: str, block: NDArray[Any]) -> NDArray[Any]:
    """Return the magnitudes. BFloat16 stays in its bits, which without the sign sort alike."""
    return block & 0x7FFF if dtype == "bfloat16" else np.abs(np.nan_to_num(block))


def _with_flipped(path: Path, at: int, bit: int) -> Iterable[bytes]:
    position = 0
    for block in blocks(path):
        if position <= at < position + len(block):
            changed = bytearray(block)
            changed[at - position] ^= 1 << bit
            yield bytes(changed)
        else:
            yield block
        position += len(block)


KIND = Damage("flip-checkpoint", "changed in one bit", flipped)
