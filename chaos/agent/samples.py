"""Samples of parameters, by which a tolerance can judge two states whose digests differ.

A sample is a line of text with bounded length: the number of values, their norm (2-norm), their mean, and some values
at places that a seed chooses. Two processes with one seed choose the same places of a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

MOST_VALUES = 16
"""Values of one parameter in a sample."""

MOST_VALUES_OF_A_STEP = 4096
"""Values of all parameters in the samples of one step. A parameter always has one."""

_BLOCK = 1 << 20
"""Values that are converted at once, so that the copy of a large parameter stays small."""


class Sampler:
    """Takes samples of parameters at places that ``seed`` chooses."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._places: dict[tuple[str, int, int], list[int]] = {}

    def samples(self, arrays: Iterable[tuple[str, Any]]) -> dict[str, str]:
        """Return a sample of each NumPy array by its name. An array that is not of numbers has none."""
        named = list(arrays)
        values = max(1, min(MOST_VALUES, MOST_VALUES_OF_A_STEP // max(1, len(named))))
        taken = {}
        for name, array in named:
            try:
                taken[name] = self._sample(name, array.reshape(-1), values)
            except (TypeError, ValueError):
                continue
        return taken

    def _sample(self, name: str, flat: Any, values: int) -> str:
        count = int(flat.size)
        squares = total = 0.0
        for begin in range(0, count, _BLOCK):
            block = flat[begin : begin + _BLOCK].astype("float64")
            squares += float((block * block).sum())
            total += float(block.sum())
        chosen = [float(flat[place]) for place in self._chosen(name, count, values)]
        numbers = [squares**0.5, total / count if count else 0.0, *chosen]
        return " ".join([str(count), *(f"{number:.9g}" for number in numbers)])

    def _chosen(self, name: str, count: int, values: int) -> list[int]:
        key = (name, count, values)
        if key not in self._places:
            self._places[key] = places(self._seed, name, count, values)
        return self._places[key]


def places(seed: int, name: str, count: int, values: int) -> list[int]:
    """Return at most ``values`` different places of a parameter with ``count`` values, in order.

    They come from a hash and not from ``random``, whose numbers depend on the release of Python.
    """
    if count <= values:
        return list(range(count))
    drawn = (
        int.from_bytes(blake2b(f"{seed}|{name}|{number}".encode(), digest_size=8).digest(), "big") % count
        for number in range(values)
    )
    return sorted(set(drawn))
