"""``flip-checkpoint``: one bit of the newest checkpoint of a rank is another, as a disk or its cable leaves it.

With ``where: data`` (the default) it is a bit of a weight: the file still loads, and only a checksum can tell. It is
the highest bit of the mantissa of the largest value, so that the difference is felt and the number stays finite. With
``where: header`` it is a bit of the first byte that tells what the file is, and nobody can read the file.

On Ascend: storage, memory or a link on the way to it that changes a bit and does not tell.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from chaos.faults.checkpoint_damage import Damage, Hit, blocks
from chaos.faults.kind import FaultMissed, Victim
from chaos.observe.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.tensor import Tensor
from chaos.plain_files import open_plain

_MANTISSA_TOP = {"float16": 9, "bfloat16": 6, "float32": 22, "float64": 51}
"""The highest bit of the mantissa, counted from the lowest one of the value."""

_LENGTH_OF_HEADER = 8  # what a safetensors file begins with


def flipped(hit: Hit, victim: Victim) -> Iterable[bytes]:
    """The file with one other bit."""
    if victim.parameters.get("where", "data") == "header":
        at, bit = header_bit(hit.path)
    else:
        at, bit = data_bit(hit.path)
    return _with_flipped(hit.path, at, bit)


def header_bit(path: Path) -> tuple[int, int]:
    """Byte and bit without which the file is none: the first record's mark, or the bracket of safetensors' header."""
    with open_plain(path) as file:
        head = file.read(_LENGTH_OF_HEADER + 1)
    return (_LENGTH_OF_HEADER if head[_LENGTH_OF_HEADER:] == b"{" else 0), 0


def data_bit(path: Path) -> tuple[int, int]:
    """Byte and bit of the largest value in the largest tensor of floats. Raises FaultMissed where there is none."""
    try:
        tensors = read_checkpoint(path).tensors
    except CheckpointError as error:
        raise FaultMissed(f"{path} cannot be read: {error.problem}") from error
    floats = [(name, one) for name, one in tensors.items() if one.dtype in _MANTISSA_TOP and one.data.size]
    if not floats:
        raise FaultMissed(f"{path} holds no floating-point values")
    name, tensor = max(floats, key=lambda named: named[1].data.nbytes)
    raw = tensor.data.tobytes()
    with open_plain(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(raw)
    if at < 0:
        raise FaultMissed(f"tensor {name!r} of {path} is cut into slices, which this fault does not flip")
    size = tensor.data.dtype.itemsize
    bit = _MANTISSA_TOP[tensor.dtype]
    return at + _largest(tensor) * size + bit // 8, bit % 8


def _largest(tensor: Tensor) -> int:
    """Index of the value of the largest magnitude. BFloat16 is kept as its bits, which without the sign sort alike."""
    if tensor.dtype == "bfloat16":
        return int(np.argmax(tensor.data.reshape(-1) & 0x7FFF))
    return int(np.argmax(np.abs(np.nan_to_num(tensor.data.reshape(-1)))))


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
