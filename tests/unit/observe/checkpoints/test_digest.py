"""The digest rule, which is part of the public history format."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from chaos.agent.digest import tensor_digest


@pytest.mark.parametrize(
    ("dtype", "shape", "head"),
    [
        ("float32", (2, 3), "float32|2x3|"),
        ("int64", (), "int64||"),
        ("int64", (1,), "int64||"),
        ("bool", (0,), "bool|0|"),
    ],
)
def test_the_digest_is_blake2b_over_type_dims_and_bytes(dtype: str, shape: tuple[int, ...], head: str) -> None:
    array = np.ones(shape, dtype)
    expected = hashlib.blake2b(head.encode() + array.tobytes(), digest_size=16).hexdigest()
    assert tensor_digest(dtype, shape, array.tobytes()) == expected
    assert tensor_digest(dtype, shape, array) == expected


def test_type_and_shape_are_part_of_the_digest() -> None:
    raw = bytes(8)
    forms = [("float32", (2,)), ("int32", (2,)), ("float32", (1, 2)), ("float32", (2, 1)), ("int64", (1,))]
    assert len({tensor_digest(dtype, shape, raw) for dtype, shape in forms}) == len(forms)


def test_a_buffer_in_another_order_is_refused_and_not_digested_wrongly() -> None:
    with pytest.raises((BufferError, ValueError)):
        tensor_digest("float32", (2, 3), np.zeros((3, 2), np.float32).T)
