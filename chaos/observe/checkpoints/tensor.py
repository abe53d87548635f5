"""A tensor of a checkpoint file: the facts that remain when its content has been read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from chaos.agent.digest import tensor_hash

# dtype name -> how its raw bytes are held. Of types that numpy lacks, the bits are kept as unsigned integers.
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
    "complex64": np.dtype("<c8"),
    "complex128": np.dtype("<c16"),
    "float8_e4m3fn": np.dtype("<u1"),
    "float8_e4m3fnuz": np.dtype("<u1"),
    "float8_e5m2": np.dtype("<u1"),
    "float8_e5m2fnuz": np.dtype("<u1"),
    "float8_e8m0fnu": np.dtype("<u1"),
}
MAX_DIMS = 32  # what numpy can hold; MindSpore itself stops at far fewer
_FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_BFLOAT16_EXPONENT = 0x7F80
# The bytes of 8-bit floats that are NaN or infinite (OCP MX 1.0; the fnuz types have one NaN in place of -0).
_NOT_FINITE = {
    "float8_e4m3fn": (0x7F, 0xFF),
    "float8_e4m3fnuz": (0x80,),
    "float8_e5m2": (0x7C, 0x7D, 0x7E, 0x7F, 0xFC, 0xFD, 0xFE, 0xFF),
    "float8_e5m2fnuz": (0x80,),
    "float8_e8m0fnu": (0xFF,),
}
NUMBERS = frozenset(STORAGE) - frozenset(_NOT_FINITE) - {"complex64", "complex128"}
"""The types whose values are read as numbers; of the others only the bytes are compared."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor, without its values.

    ``dtype`` is numpy's name, or PyTorch's for a type that numpy lacks (``bfloat16``, ``float8_…``). ``digest`` equals
    the digest that the agent computes for the same values in the process (``chaos.agent.digest``). ``finite``: no value
    is NaN or infinite; integers and booleans always are finite. ``scalar`` is the value of a tensor that holds exactly
    one number, else None.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    digest: str
    finite: bool
    scalar: bool | int | float | None


def byte_count(dtype: str, shape: Sequence[int]) -> int:
    """Return how many bytes a tensor of this type and shape takes. ``dtype`` must be a key of ``STORAGE``."""
    return prod(shape) * STORAGE[dtype].itemsize


class TensorContent:
    """Makes a tensor from its content, which comes in pieces and is not kept.

    ``size`` is the number of bytes that type and shape need, ``filled`` the number received.
    """

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.size = byte_count(dtype, shape)
        self.filled = 0
        self._storage = STORAGE[dtype]
        self._hash = tensor_hash(dtype, shape)
        self._begun = b""  # of a value that the last piece ended inside of
        self._single = b""
        self._finite = True
        self._booleans = True

    def take(self, piece: bytes | memoryview) -> None:
        """Take the next bytes. A piece may end anywhere, even inside a value, and is not looked at again afterwards."""
        self._hash.update(piece)
        self.filled += len(piece)
        if self.size == self._storage.itemsize:
            self._single += bytes(piece)
        if self.dtype == "bool" and piece:
            self._booleans = self._booleans and bool(np.frombuffer(piece, np.uint8).max() <= 1)
        if self._finite and self.dtype in _FLOATS:
            self._look(memoryview(piece))
        elif self._finite and self.dtype in _NOT_FINITE:
            self._finite = not np.isin(np.frombuffer(piece, np.uint8), _NOT_FINITE[self.dtype]).any()

    def tensor(self) -> Tensor:
        """Return the tensor, after its last piece. Raises ValueError when the content cannot be one.

        The reasons: missing or surplus bytes, a boolean that is neither 0 nor 1, which no writer makes, or a shape that
        no array can have.
        """
        if self.filled != self.size:
            raise ValueError(f"has {self.filled} of its {self.size} bytes")
        if not self._booleans:
            raise ValueError("holds a boolean that is neither 0 nor 1")
        if not self.size:
            np.empty(self.shape, self._storage)  # the other dims are not held to any bytes: numpy refuses absurd ones
        return Tensor(self.name, self.dtype, self.shape, self._hash.hexdigest(), self._finite, self._scalar())

    def _look(self, piece: memoryview) -> None:
        """Test the values that this piece completes, and keep the beginning of the next."""
        width = self._storage.itemsize
        if self._begun:
            missing = width - len(self._begun)
            self._begun += bytes(piece[:missing])
            piece = piece[missing:]
            if len(self._begun) < width:
                return
            self._test(memoryview(self._begun))
        whole = len(piece) // width * width
        self._test(piece[:whole])
        self._begun = bytes(piece[whole:])

    def _test(self, values: memoryview) -> None:
        if self.dtype == "bfloat16":
            exponents = np.frombuffer(values, np.dtype("<u2")) & _BFLOAT16_EXPONENT
            finite = exponents != _BFLOAT16_EXPONENT
        else:
            finite = np.isfinite(np.frombuffer(values, self._storage))
        self._finite = self._finite and bool(finite.all())

    def _scalar(self) -> bool | int | float | None:
        if self.size != self._storage.itemsize or self.dtype not in NUMBERS:
            return None
        array = np.frombuffer(self._single, self._storage)
        if self.dtype == "bfloat16":
            array = (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
        value: bool | int | float = array.item()
        return value
