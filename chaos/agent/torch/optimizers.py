"""PyTorch's optimizers of a process, and the state that they and their model hold, by name.

Names are the same in the process and in its checkpoints: a weight has its name in the model without the prefixes of
wrappers, a slot of the optimizer ``optimizer.KEY.N``, where N counts the weights as ``Optimizer.state_dict`` does.
"""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator
from typing import Any

from chaos.agent.torch.names import bare, is_saved, named_optimizers

_MOST_NUMBERS = 8
"""Numbers of one list that are recorded."""


class Optimizers:
    """The optimizers of this process, in the order in which they were made."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []
        self._collected = 0

    def note(self, optimizer: Any) -> None:
        """Note that an optimizer is made; one that wraps another is noted as well."""
        if all(made() is not optimizer for made in self._made):
            self._made.append(weakref.ref(optimizer))

    def alive(self) -> list[Any]:
        """Return the optimizers that exist and that no other one holds: ZeroRedundancyOptimizer has one within it."""
        if self._collected < len(self._made) > 1:
            self._collected = len(self._made)
            gc.collect()  # one that the job has replaced may only wait for this; it takes too long for every step
        alive = [optimizer for made in self._made if (optimizer := made()) is not None]
        within = {id(part) for optimizer in alive for part in vars(optimizer).values() if part is not optimizer}
        return [optimizer for optimizer in alive if id(optimizer) not in within]


def updates_of(optimizer: Any) -> int | None:
    """Return the number of updates, which a checkpoint restores; None for an optimizer that counts none, as SGD."""
    counts = [
        int(state["step"])
        for part in (optimizer, *_within(optimizer))
        for state in part.state.values()
        if isinstance(state, dict) and "step" in state
    ]
    return max(counts) if counts else None


def keeps_own_part(optimizer: Any) -> bool:
    """Return whether an optimizer keeps the state of some of its weights only, as ZeroRedundancyOptimizer does."""
    within = _within(optimizer)
    kept = {id(weight) for part in within for weight in _weights(part)}
    return bool(within) and any(id(weight) not in kept for weight in _weights(optimizer))


def hyperparameters_of(optimizers: list[Any]) -> dict[str, float]:
    """Return the numbers that a schedule may change: the learning rate and all others of each group of weights.

    A tensor of one value counts as a number, and each number of a list (``betas``) by its place.
    """
    numbers: dict[str, float] = {}
    for prefix, optimizer in named_optimizers(optimizers):
        for number, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                for name, held in _numbered(key, value) if key != "params" else ():
                    if (known := _number(held)) is not None:
                        numbers[f"{prefix}.{number}.{name}"] = known
    return numbers


def _numbered(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        for place, held in enumerate(value[:_MOST_NUMBERS]):
            yield f"{key}.{place}", held
    else:
        yield key, value


def _number(value: Any) -> float | None:
    if hasattr(value, "numel") and hasattr(value, "item") and value.numel() == 1:
        value = value.item()
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def _within(optimizer: Any) -> list[Any]:
    """Return the optimizers that an optimizer has within it."""
    parts = [part for part in vars(optimizer).values() if part is not optimizer]
    return [part for part in parts if hasattr(part, "param_groups") and hasattr(part, "state")]


def _weights(optimizer: Any) -> list[Any]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def state_of(model: Any, optimizers: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the model's parameters and buffers, and the optimizers' slots, with their names."""
    named = dict(model.named_parameters())
    named.update((name, buffer) for name, buffer in model.named_buffers() if is_saved(model, name))
    for name, value in named.items():
        yield bare(name), value
    for prefix, optimizer in named_optimizers(optimizers):
        yield from _slots(optimizer, prefix)


def frozen_in(model: Any) -> list[str]:
    """Return the names of the model's parameters that are not trained, as the base of a model with adapters."""
    return [bare(name) for name, weight in model.named_parameters() if not weight.requires_grad]


def not_comparable(optimizers: list[Any]) -> list[str]:
    """Return the names of slots that hold tensors or objects within a list, say: their text says not what they hold."""
    slots = (slot for prefix, optimizer in named_optimizers(optimizers) for slot in _slots(optimizer, prefix))
    return [name for name, value in slots if not (hasattr(value, "detach") or _is_plain(value))]


def _is_plain(value: Any) -> bool:
    """Return whether the text of a value says all of it."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes))


def _slots(optimizer: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    parts = (optimizer, *_within(optimizer))
    for number, weight in enumerate(_weights(optimizer)):
        held = (part.state.get(weight) for part in parts)
        state: Any = next(filter(None, held), {})
        for key in state if isinstance(state, dict) else ():
            if (value := state[key]) is not None:
                yield f"{prefix}.{key}.{number}", value
