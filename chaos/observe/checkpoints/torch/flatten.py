"""The tensors and plain values in a structure of dictionaries, lists and inert objects, by flat names.

A name joins the keys on the way by points, as in ``model.net.0.weight`` or ``optimizer.state.0.exp_avg``. An object's
state counts as a dictionary. Very long lists of plain values (a history of losses, an order of samples) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.observe.checkpoints.checkpoint_error import UnknownContent
from chaos.observe.checkpoints.parsed import Plain
from chaos.observe.checkpoints.torch.inert_pickle import Global, Inert
from chaos.observe.checkpoints.torch.objects import ArrayRef, TensorRef, array_of

MAX_VALUES = 1 << 18
"""Values that are visited, those of shared objects once for each place."""

MAX_DEPTH = 64
MAX_NAME = 1000
MAX_LIST = 1 << 16
"""Plain values in a list that are read; the parameters of an optimizer are such a list."""

MAX_NAMES = 64 << 20
"""Bytes of all names and texts."""

ALONE = "value"
"""The name of a tensor or value that is no part of a dictionary or list."""

Leaf = TensorRef | ArrayRef | Plain

_TENSORS = ("torch._utils._rebuild_", "torch._tensor._rebuild_")
_LOCAL = "_local_tensor"
"""The attribute of a DTensor with the part of its rank, which goes by the DTensor's own name."""


def flatten(structure: object) -> dict[str, Leaf]:
    """Return all tensors, arrays, numbers and texts by their names.

    Raises UnknownContent for a kind of tensor that is not read, and for a structure over the limits.
    """
    leaves: dict[str, Leaf] = {}
    size = 0
    for name, leaf in _Walk().leaves(structure, "", 0):
        size += len(name) + (len(leaf) if isinstance(leaf, str) else 0)
        if size > MAX_NAMES:
            raise UnknownContent(f"names and texts of more than {MAX_NAMES} bytes, the limit for all of a file")
        if name in leaves:
            raise UnknownContent(f"two values are called {name!r}")
        leaves[name] = leaf
    return leaves


class _Walk:
    """Counts the visited values."""

    def __init__(self) -> None:
        self._visited = 0

    def leaves(self, value: object, name: str, depth: int) -> Iterator[tuple[str, Leaf]]:
        """Yield the tensors and plain values in a value, with their names."""
        self._visited += 1
        if self._visited > MAX_VALUES:
            raise UnknownContent(f"more than {MAX_VALUES} values, the limit for a file")
        if depth > MAX_DEPTH:
            raise UnknownContent(f"values nested deeper than {MAX_DEPTH} levels, or in a circle")
        if isinstance(value, (TensorRef, ArrayRef, bool, float, str)) or (
            isinstance(value, int) and abs(value) < 1 << 63
        ):
            yield name or ALONE, value
        for key, child in _children(value, name):
            yield from self.leaves(child, _joined(name, key), depth + 1)


def _children(value: object, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((_text(key), child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        if len(value) <= MAX_LIST or not all(isinstance(child, (int, float, str, type(None))) for child in value):
            yield from ((str(place), child) for place, child in enumerate(value))
    elif isinstance(value, Inert):
        if (array := array_of(value)) is not None:
            yield "", array
            return
        state = value.state
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
            state = {**(state[0] if isinstance(state[0], dict) else {}), **state[1]}  # an object with __slots__
        if isinstance(state, dict) and isinstance(state.get(_LOCAL), TensorRef):
            yield "", state[_LOCAL]
        elif value.path.startswith(_TENSORS):
            raise UnknownContent(f"{name[:100]!r} is made by {value.path[:100]}, which this reader does not know")
        elif isinstance(state, dict):
            yield from ((_text(key), child) for key, child in state.items())
        yield from ((_text(key), child) for key, child in value.items.items())
        yield from ((str(place), child) for place, child in enumerate(value.values))


def _joined(name: str, key: str) -> str:
    whole = f"{name}.{key}" if name and key else name or key
    if len(whole) > MAX_NAME:
        raise UnknownContent(f"a name of more than {MAX_NAME} characters: {whole[:100]!r}")
    return whole


def _text(key: object) -> str:
    """Return a dictionary's key as a part of a name."""
    if isinstance(key, tuple):
        return "/".join(map(_text, key))
    if isinstance(key, (Global, Inert)):
        return key.path
    return key if isinstance(key, str) else str(key)
