"""A tensor out of a checkpoint file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.agent.digest import tensor_digest

# dtype name -> how its raw bytes are held. numpy has no bfloat16, so its bits are kept as unsigned integers.
STORAGE = {
    "bool": np.dtype("?"),
    "int8": np.dtype("<i1"),
    "uint8": np.dtype("<u1"),
    "int16": np.dtype("<i2"),
    "uint16": np.dtype("<u2"),
    "int32": np.dtype("<i4"),
    "uint32": np.dtype("<u4"),
    "int64": np.dtype("<i8"),
    "uint64": np.dtype("<u8"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}
MAX_DIMS = 32  # what numpy can hold; MindSpore itself stops at far fewer
_FLOATS = ("float16", "float32", "float64")
_BFLOAT16_EXPONENT = 0x7F80
_BLOCK = 1 << 22  # values looked at in one go, so that a test over a huge tensor needs no huge temporary


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor.

    ``dtype`` is numpy's name or ``bfloat16``; ``data`` has the shape ``shape`` and is read-only. For bfloat16 it holds
    the raw bits as uint16; ``as_float32`` gives the numbers.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: NDArray[Any]

    def digest(self) -> str:
        """The digest that the agent computes for the same values in the process (``chaos.agent.digest``)."""
        return tensor_digest(self.dtype, self.shape, self.data)

    def finite(self) -> bool:
        """Whether no value is NaN or infinite. Integers and booleans always are finite."""
        if self.dtype == "bfloat16":
            return all(bool(((block & _BFLOAT16_EXPONENT) != _BFLOAT16_EXPONENT).all()) for block in self._blocks())
        if self.dtype in _FLOATS:
            return all(bool(np.isfinite(block).all()) for block in self._blocks())
        return True

    def as_float32(self) -> NDArray[np.float32]:
        """The values as float32. Exact for bfloat16 and float16; float64 and wide integers are rounded."""
        if self.dtype == "bfloat16":
            return (self.data.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return self.data.astype(np.float32)

    def scalar(self) -> bool | int | float | None:
        """The value of a tensor that holds exactly one, else None."""
        if self.data.size != 1:
            return None
        value: bool | int | float = (self.as_float32() if self.dtype == "bfloat16" else self.data).item()
        return value

    def _blocks(self) -> list[NDArray[Any]]:
        flat = self.data.reshape(-1)
        return [flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)]


def byte_count(dtype: str, shape: Sequence[int]) -> int:
    """How many bytes a tensor of this type and shape takes. ``dtype`` must be a key of ``STORAGE``."""
    return prod(shape) * STORAGE[dtype].itemsize


def make_tensor(name: str, dtype: str, shape: tuple[int, ...], raw: bytes | bytearray) -> Tensor:
    """A tensor over ``raw`` without a copy. ``raw`` must have ``byte_count`` bytes.

    Raises ValueError when a boolean is neither 0 nor 1: no writer makes that.
    """
    if dtype == "bool" and raw and np.frombuffer(raw, np.uint8).max() > 1:
        raise ValueError("holds a boolean that is neither 0 nor 1")
    storage = STORAGE[dtype]
    data = np.frombuffer(raw, storage).reshape(shape) if raw else np.empty(shape, storage)
    data.flags.writeable = False
    return Tensor(name, dtype, shape, data)
