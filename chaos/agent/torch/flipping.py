"""One bit of a tensor of PyTorch, in place. PyTorch is found where the job has imported it; nothing here imports it."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
"""PyTorch's types for the bits of a value, by its size in bytes: NumPy lacks bfloat16 and the 8-bit floats."""


def drawn_element(order: Mapping[str, Any], size: int) -> int:
    """Return the place that the order names among ``size`` values, or one that its seed draws."""
    seed = int(order.get("seed", 0))
    return int(order.get("element", random.Random(f"{seed} element").randrange(size))) % size


def flip(values: Any, place: int, order: Mapping[str, Any]) -> dict[str, Any]:
    """Flip the bit that the order names, or its seed draws, of the value at a flat place; return a record of it.

    Any layout and any device will do: only the one value is copied to the host, and back.
    """
    module: Any = sys.modules[type(values.dtype).__module__]
    width = int(values.element_size()) * 8
    bit = int(order.get("bit", random.Random(f"{int(order.get('seed', 0))} bit").randrange(width))) % width
    at = _index(place, values.shape)
    one = values[at].detach().cpu().reshape(1)
    before = float(one)
    mask = 1 << bit if bit < width - 1 else -(1 << bit)  # the integers have a sign
    bits = one.view(getattr(module, _INTEGERS[width // 8])) ^ mask
    changed = bits.view(values.dtype)
    values[at] = changed[0]
    return {
        "dtype": str(values.dtype).rpartition(".")[2],
        "bit": bit,
        "before": before.hex(),
        "after": float(changed).hex(),
        "bits": f"{int(bits) & (1 << width) - 1:0{width // 4}x}",
    }


def _index(place: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the indices of a place in the flat array."""
    index = []
    for size in reversed(tuple(shape)):
        place, at = divmod(place, size)
        index.append(at)
    return tuple(reversed(index))
