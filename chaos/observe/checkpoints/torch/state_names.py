"""The names that a rank has for the values in a checkpoint of its model and its optimizers.

A script may keep their states under any keys. The agent records a weight by its name in the model, and a slot of an
optimizer as ``optimizer.KEY.N`` (:mod:`chaos.agent.torch.optimizers`); here a file's names become the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from chaos.agent.torch.optimizers import bare
from chaos.observe.checkpoints.torch.objects import TensorRef

Value = TypeVar("Value")

_MODELS = ("model", "module", "model_state", "model_state_dict", "state_dict", "net", "network", "weights")
"""Keys under which scripts and libraries keep the state of the trained model, beside that of an average, say."""

_SLOT = re.compile(r"state\.(?P<parameter>.+)\.(?P<key>[^.]+)")
_DEEPEST = 3


@dataclass(frozen=True)
class _Part:
    """A dictionary of a file: the state of an optimizer, or a number of tensors that may be a model's."""

    path: tuple[str, ...]
    optimizer: bool
    tensors: int

    @property
    def prefix(self) -> str:
        return "".join(f"{key}." for key in self.path)


def named_as_in_rank(structure: object, leaves: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of a file by the names that a rank has for them; other values keep their names.

    Args:
        structure: the file's dictionaries, as they were saved.
        leaves: the values in them, by names that join the keys on the way by points.
    """
    parts = list(_parts(structure, ()))
    optimizers = [part for part in parts if part.optimizer]
    model = _model([part for part in parts if not part.optimizer])
    named: dict[str, Value] = {}
    for name, value in leaves.items():
        new = _in_rank(name, optimizers, model)
        if new in named:  # two parts share a name, so nobody knows which of them the rank holds
            return dict(leaves)
        named[new] = value
    return named


def _parts(value: object, path: tuple[str, ...]) -> Iterator[_Part]:
    if not isinstance(value, dict) or len(path) > _DEEPEST:
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


def _in_rank(name: str, optimizers: list[_Part], model: _Part | None) -> str:
    for number, optimizer in enumerate(optimizers, 1):
        if name.startswith(optimizer.prefix) and (slot := _SLOT.fullmatch(name[len(optimizer.prefix) :])):
            return f"optimizer{'' if number == 1 else number}.{slot['key']}.{slot['parameter']}"
    if model is not None and name.startswith(model.prefix):
        return bare(name[len(model.prefix) :])
    return name
