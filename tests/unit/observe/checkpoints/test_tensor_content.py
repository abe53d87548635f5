"""What is told of a tensor whose content comes in pieces is what is told of the whole array."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from chaos.agent.digest import tensor_digest
from chaos.observe.checkpoints.tensor import NUMBERS, STORAGE, TensorContent

INFINITE = {
    "float16": b"\x00\x7c",
    "bfloat16": b"\x80\xff",
    "float32": b"\0\0\xc0\x7f",
    "float64": bytes(6) + b"\xf0\x7f",
}


def as_array(dtype: str, shape: tuple[int, ...], raw: bytes) -> NDArray[Any]:
    """The whole array; numpy has no bfloat16, whose bits are the upper half of a float32."""
    array = np.frombuffer(raw, STORAGE[dtype])
    if dtype == "bfloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.reshape(shape)


def pieces(raw: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]
    return [raw[begin:end] for begin, end in pairwise(places)]


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
@given(
    count=st.integers(0, 40),
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    infinite=st.none() | st.integers(0, 39),
    column=st.booleans(),
)
def test_pieces_are_as_good_as_the_whole(
    dtype: str, count: int, seed: int, cuts: list[int], infinite: int | None, column: bool
) -> None:
    shape = (count, 1) if column else (count,) if count != 1 else ()
    width, random = STORAGE[dtype].itemsize, Random(seed)
    raw = bytearray(random.choices([0, 1], k=count) if dtype == "bool" else random.randbytes(count * width))
    if infinite is None and dtype in INFINITE:
        raw[width - 1 :: width] = bytes(count)  # a small exponent
    elif dtype in INFINITE and count:
        at = (infinite or 0) % count * width
        raw[at : at + width] = INFINITE[dtype]
    content = TensorContent("w", dtype, shape)
    for piece in pieces(bytes(raw), cuts):
        content.take(memoryview(piece))
    tensor, array = content.tensor(), as_array(dtype, shape, bytes(raw))
    assert tensor.digest == tensor_digest(dtype, shape, bytes(raw))
    assert tensor.finite == bool(np.isfinite(array).all())
    if count != 1:
        assert tensor.scalar is None
    else:
        assert type(tensor.scalar) is type(array.item())
        assert tensor.scalar == array.item() or (math.isnan(array.item()) and math.isnan(tensor.scalar or 0))


def test_a_boolean_that_is_neither_0_nor_1_is_refused_in_any_piece() -> None:
    for bad in range(6):
        content = TensorContent("flag", "bool", (6,))
        raw = bytes(2 if index == bad else 1 for index in range(6))
        for piece in pieces(raw, [2, 4]):
            content.take(piece)
        with pytest.raises(ValueError, match="neither 0 nor 1"):
            content.tensor()


@pytest.mark.parametrize("count", [7, 9])
def test_a_tensor_of_fewer_or_more_bytes_is_refused(count: int) -> None:
    content = TensorContent("w", "float32", (2,))
    content.take(bytes(count))
    with pytest.raises(ValueError, match=f"has {count} of its 8 bytes"):
        content.tensor()


def test_a_shape_that_no_array_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dimension|too big"):
        TensorContent("w", "float32", (0, 1 << 62, 1 << 62)).tensor()


@pytest.mark.parametrize("dtype", sorted(set(STORAGE) - NUMBERS))
def test_types_without_plain_numbers_are_compared_by_their_bytes(dtype: str) -> None:
    raw = bytes(STORAGE[dtype].itemsize)
    content = TensorContent("w", dtype, ())
    for byte in raw:
        content.take(bytes([byte]))
    tensor = content.tensor()
    assert (tensor.digest, tensor.finite, tensor.scalar) == (tensor_digest(dtype, (), raw), True, None)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float8_e4m3fn", {0x7F, 0xFF}),
        ("float8_e4m3fnuz", {0x80}),
        ("float8_e5m2", {0x7C, 0x7D, 0x7E, 0x7F, 0xFC, 0xFD, 0xFE, 0xFF}),
        ("float8_e5m2fnuz", {0x80}),
        ("float8_e8m0fnu", {0xFF}),
    ],
)
def test_the_bytes_of_8_bit_floats_that_are_no_numbers(dtype: str, expected: set[int]) -> None:
    """As float8.to(float32) of PyTorch 2.13 gives NaN or an infinity (torch_jobs/test_torch_files.py)."""
    assert {byte for byte in range(256) if not _finite(dtype, bytes([byte]))} == expected
    assert not _finite("complex64", np.array([1j * np.inf], np.complex64).tobytes())


def _finite(dtype: str, raw: bytes) -> bool:
    content = TensorContent("w", dtype, (1,))
    content.take(raw)
    return content.tensor().finite
