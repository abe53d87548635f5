"""The first element in which a tensor of two checkpoint files differs. Only this one value of each is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chaos.base.plain_files import open_plain
from chaos.observe.checkpoints.blocks import BlockReader
from chaos.observe.checkpoints.checkpoint import read_checkpoint
from chaos.observe.checkpoints.tensor import NUMBERS, STORAGE

Number = bool | int | float


@dataclass(frozen=True)
class ElementDifference:
    """An element by its index in the tensor, empty for a scalar, with its value in either file."""

    index: tuple[int, ...]
    expected: Number
    seen: Number


def first_difference(expected: Path, seen: Path, name: str) -> ElementDifference | None:
    """Return the first element of tensor ``name`` whose bytes differ in two files.

    None where there is none, where the types or shapes differ, where its values are no plain numbers, or where they do
    not lie in a file in order. Raises CheckpointError and OSError.
    """
    files = read_checkpoint(expected), read_checkpoint(seen)
    tensors = [file.tensors.get(name) for file in files]
    first, second = tensors
    if first is None or second is None or (first.dtype, first.shape) != (second.dtype, second.shape):
        return None
    if first.dtype not in NUMBERS or any(name not in file.places for file in files):
        return None
    with open_plain(expected) as expected_file, open_plain(seen) as seen_file:
        spans = [file.places[name] for file in files]
        blocks = zip(BlockReader(expected_file).read(spans[0]), BlockReader(seen_file).read(spans[1]), strict=True)
        difference = _first(blocks, STORAGE[first.dtype].itemsize)
    if difference is None:
        return None
    element, ours, theirs = difference
    index = tuple(int(place) for place in np.unravel_index(element, first.shape)) if first.shape else ()
    return ElementDifference(index, _number(first.dtype, ours), _number(first.dtype, theirs))


def _first(blocks: Iterator[tuple[memoryview, memoryview]], width: int) -> tuple[int, bytes, bytes] | None:
    """Return the number of the first element that differs, with its bytes. A block ends with a whole element."""
    before = 0
    for ours, theirs in blocks:
        unequal = np.frombuffer(ours, np.uint8) != np.frombuffer(theirs, np.uint8)
        if unequal.any():
            element = int(unequal.argmax()) // width
            place = slice(element * width, (element + 1) * width)
            return before + element, bytes(ours[place]), bytes(theirs[place])
        before += len(ours) // width
    return None


def _number(dtype: str, content: bytes) -> Number:
    """Return a value as it is written: the shortest decimal that stands for it in its own type."""
    value = np.frombuffer(content, STORAGE[dtype])
    if dtype == "bfloat16":
        value = (value.astype(np.uint32) << np.uint32(16)).view(np.float32)
    scalar: Number = value.item()
    return float(str(value[0])) if isinstance(scalar, float) and math.isfinite(scalar) else scalar
