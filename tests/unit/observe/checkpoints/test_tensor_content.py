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
from chaos.observe.checkpoints.tensor import STORAGE, TensorContent

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


@pytest.mark.parametrize("dtype", list(STORAGE))
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
