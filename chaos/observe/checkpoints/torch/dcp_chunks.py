"""A whole tensor of ``torch.distributed.checkpoint``, put together from chunks that lie in several files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from chaos.observe.checkpoints.blocks import BlockReader, Span
from chaos.observe.checkpoints.checkpoint_error import UnknownContent
from chaos.observe.checkpoints.tensor import STORAGE
from chaos.observe.checkpoints.torch.dcp_metadata import Chunk, StoredTensor

MAX_CHUNKS = 1 << 12
MAX_RUNS = 1 << 21
"""Runs of values that lie in order, of one tensor."""


def check_tiles(name: str, tensor: StoredTensor) -> None:
    """Check that the chunks are the whole tensor, each value once. Raises ValueError, and UnknownContent."""
    chunks = tensor.chunks
    if len(chunks) > MAX_CHUNKS:
        raise UnknownContent(f"tensor {name!r} is in {len(chunks)} parts, over the limit of {MAX_CHUNKS}")
    stored, size = sum(prod(chunk.shape) for chunk in chunks), prod(tensor.shape)
    if stored != size:
        raise ValueError(f"the parts of tensor {name!r} have {stored} values, and the tensor has {size}")
    for number, chunk in enumerate(chunks):
        for other in chunks[number + 1 :]:
            if tensor.shape and other.offsets[0] >= chunk.offsets[0] + chunk.shape[0]:
                break  # they are in order
            if _overlap(chunk, other):
                raise ValueError(f"two parts of tensor {name!r} overlap, at {list(other.offsets)}")


def _overlap(chunk: Chunk, other: Chunk) -> bool:
    return all(
        max(ours, theirs) < min(ours + our_size, theirs + their_size)
        for ours, our_size, theirs, their_size in zip(
            chunk.offsets, chunk.shape, other.offsets, other.shape, strict=True
        )
    )


def runs(name: str, tensor: StoredTensor) -> Iterator[tuple[Chunk, Span]]:
    """Yield the whole tensor's values in their order, as chunks with a part in bytes of their content."""
    width, inner = STORAGE[tensor.dtype].itemsize, _first_cut(tensor)
    outer = tensor.shape[:inner]
    if prod(outer) * len(tensor.chunks) > MAX_RUNS:
        raise UnknownContent(f"tensor {name!r} is cut into too many runs of values")
    for at in product(*map(range, outer)):
        for chunk in tensor.chunks:
            place = _place(chunk, at)
            length = prod(chunk.shape[inner:]) * width
            if place is not None and length:
                yield chunk, Span(place * length, length)


def _first_cut(tensor: StoredTensor) -> int:
    """Return the last dimension in which a chunk has less than the tensor: a chunk's values lie in order from there."""
    cut = [
        place
        for place, dim in enumerate(tensor.shape)
        if any(chunk.shape[place] != dim for chunk in tensor.chunks if prod(chunk.shape))
    ]
    return cut[-1] if cut else 0


def _place(chunk: Chunk, at: Sequence[int]) -> int | None:
    """Return the number of the run in a chunk at the outer indices; None where it has none there."""
    place = 0
    for index, offset, size in zip(at, chunk.offsets, chunk.shape, strict=False):
        if not offset <= index < offset + size:
            return None
        place = place * size + index - offset
    return place


def whole_content(
    name: str,
    tensor: StoredTensor,
    places: dict[Chunk, Span],
    open_file: Callable[[str], io.BufferedReader],
) -> Iterator[memoryview]:
    """Yield the tensor's content in blocks. ``places`` says where each chunk's values lie in its file."""
    readers: dict[str, BlockReader] = {}
    for chunk, part in runs(name, tensor):
        file = chunk.item.file
        if file not in readers:
            readers[file] = BlockReader(open_file(file))
        yield from readers[file].read(Span(places[chunk].at + part.at, part.length))
