"""The digest of a tensor: one rule for the process that trains and for the reader of its files."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

EMPTY_PART = blake2b(b"empty part", digest_size=16).hexdigest()
"""The digest of a rank that holds no value of a tensor which is cut over ranks."""


def dims_text(shape: Sequence[int]) -> str:
    """Return the shape in the form that a digest has: ``3x4``, and an empty text for a scalar.

    The shapes ``()`` and ``(1,)`` are written alike. A scalar parameter is ``()`` in the process and, by the release of
    MindSpore, ``[]``, ``[0]`` or ``[1]`` in the file; both sides must come to the same digest.
    """
    dims = [int(dim) for dim in shape]
    return "" if dims in ([], [1]) else "x".join(str(dim) for dim in dims)


def tensor_hash(dtype: str, shape: Sequence[int]) -> blake2b:
    """Return a hash that takes a tensor's values in any number of pieces; ``tensor_digest`` has the rule."""
    return blake2b(f"{dtype}|{dims_text(shape)}|".encode(), digest_size=16)


def tensor_digest(dtype: str, shape: Sequence[int], raw: Any) -> str:
    """Return the digest of one tensor, 32 hexadecimal digits.

    ``dtype`` is the name that numpy uses (``float32``, ``int64``, ``bool``), or PyTorch's for a type that numpy lacks
    (``bfloat16``, ``float8_e4m3fn``). ``raw`` is any C-contiguous buffer with the values in little-endian order: bytes,
    a memoryview, or the array itself, which is not copied then. An array of a type without buffer support (bfloat16)
    must be passed as ``array.tobytes()``. Raises BufferError or ValueError when the buffer is not contiguous.
    """
    digest = tensor_hash(dtype, shape)
    digest.update(raw)
    return digest.hexdigest()


def number_digest(value: object) -> str:
    """Return the digest of a plain number, which may stand where others have a tensor."""
    return tensor_digest("number", (), repr(value).encode())
