"""The names that a rank has for the values in a checkpoint of its model and its optimizers.

A script may keep their states under any keys. The agent records a weight by its name in the model, and a slot of an
optimizer as ``optimizer.KEY.N`` (:mod:`chaos.agent.torch.optimizers`); here a file's names become the same. The state
of an optimizer may name the weights in place of numbers, as ``torch.distributed.checkpoint.state_dict`` does: the
list of its weights then gives the numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from chaos.agent.torch.names import WRAPPERS, bare
from chaos.observe.checkpoints.tensor import Tensor
from chaos.observe.checkpoints.torch.objects import TensorRef

Value = TypeVar("Value")

_MODELS = ("model", "module", "model_state", "model_state_dict", "state_dict", "net", "network", "weights")
"""Keys under which scripts and libraries keep the state of the trained model, beside that of an average, say."""

_SLOT = re.compile(r"state\.(?P<parameter>.+)\.(?P<key>[^.]+)")
_LISTED = re.compile(r"param_groups\.(?P<group>\d{1,9})\.params\.(?P<place>\d{1,9})")
_DEEPEST = 3
_WRAPPERS = frozenset(prefix.rstrip(".") for prefix in WRAPPERS)


@dataclass(frozen=True)
class _Part:
    """A dictionary of a file: the state of an optimizer, or a number of tensors that may be a model's."""

    path: tuple[str, ...]
    optimizer: bool
    tensors: int

    @property
    def prefix(self) -> str:
        return "".join(f"{key}." for key in self.path)


def without_wrappers(name: str) -> str:
    """Return a name without the parts that wrappers add, wherever they stand."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def named_as_in_rank(structure: object, leaves: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of a file by the names that a rank has for them; other values keep their names.

    Args:
        structure: the file's dictionaries, as they were saved.
        leaves: the values in them, by names that join the keys on the way by points.
    """
    new = _new_names(list(_parts(structure, ())), leaves)
    return {new[name]: value for name, value in leaves.items()}


def names_by_paths(paths: Mapping[str, tuple[object, ...]], leaves: Mapping[str, object]) -> dict[str, str]:
    """Return the names that a rank has for values whose dictionaries are known only by the keys on the way.

    Args:
        paths: the keys on the way to each tensor or saved object.
        leaves: the values, by names that join the keys by points.
    """
    lists = {path[: path.index("param_groups")] for path in paths.values() if "param_groups" in path}
    optimizers = {keys for keys in lists if all(isinstance(key, str) for key in keys)}
    outside = {
        name: path
        for name, path in paths.items()
        if isinstance(leaves.get(name), Tensor) and not any(path[: len(keys)] == keys for keys in optimizers)
    }
    holders = Counter(path[:-1] for path in outside.values())
    parts = [_Part(tuple(map(str, keys)), True, 0) for keys in sorted(optimizers, key=str)]
    parts += [_Part(tuple(map(str, keys)), False, count) for keys, count in holders.items() if len(keys) <= _DEEPEST]
    return _new_names(parts, leaves)


def _new_names(parts: list[_Part], leaves: Mapping[str, object]) -> dict[str, str]:
    """Return the new name of each value; the old ones where two would share a name: nobody knows which a rank holds."""
    optimizers = [part for part in parts if part.optimizer]
    numbers = [_numbers(part, leaves) for part in optimizers]
    model = _model([part for part in parts if not part.optimizer])
    named = {name: _in_rank(name, list(zip(optimizers, numbers, strict=True)), model) for name in leaves}
    return named if len(set(named.values())) == len(named) else {name: name for name in leaves}


def _numbers(optimizer: _Part, leaves: Mapping[str, object]) -> dict[str, int]:
    """Return the numbers of the weights that an optimizer lists by their names; none where it lists numbers."""
    listed = [
        (int(match["group"]), int(match["place"]), value)
        for name, value in leaves.items()
        if isinstance(value, str)
        and name.startswith(optimizer.prefix)
        and (match := _LISTED.fullmatch(name[len(optimizer.prefix) :]))
    ]
    return {weight: number for number, (_, _, weight) in enumerate(sorted(listed))}


def _parts(value: object, path: tuple[str, ...]) -> Iterator[_Part]:
    if len(path) > _DEEPEST:
        return
    if isinstance(value, (list, tuple)):
        for place, child in enumerate(value):
            yield from _parts(child, (*path, str(place)))
    if not isinstance(value, dict):
        return
    if isinstance(value.get("state"), dict) and isinstance(value.get("param_groups"), list):
        yield _Part(path, True, 0)
        return
    tensors = sum(isinstance(child, TensorRef) for child in value.values())
    if tensors:
        yield _Part(path, False, tensors)
    for key, child in value.items():
        if isinstance(key, str):
            yield from _parts(child, (*path, key))


def _model(parts: list[_Part]) -> _Part | None:
    """Return the part with the trained model: the one with a usual name, else the one with the most tensors."""

    def rank(part: _Part) -> tuple[Any, ...]:
        last = part.path[-1] if part.path else ""
        return (last not in _MODELS, _MODELS.index(last) if last in _MODELS else 0, -part.tensors, part.path)

    return min(parts, key=rank, default=None)


def _in_rank(name: str, optimizers: list[tuple[_Part, dict[str, int]]], model: _Part | None) -> str:
    for number, (optimizer, numbers) in enumerate(optimizers, 1):
        if name.startswith(optimizer.prefix) and (slot := _SLOT.fullmatch(name[len(optimizer.prefix) :])):
            weight = numbers.get(slot["parameter"], slot["parameter"])
            return f"optimizer{'' if number == 1 else number}.{slot['key']}.{weight}"
    if model is not None and name.startswith(model.prefix):
        return bare(name[len(model.prefix) :])
    return name
