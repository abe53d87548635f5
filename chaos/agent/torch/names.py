"""The names of weights and buffers in a module, as its checkpoints have them."""

from __future__ import annotations

from typing import Any

WRAPPERS = ("module.", "_orig_mod.")
"""Prefixes that DistributedDataParallel and torch.compile add to the names of a model's parameters."""


_WITHIN = ("_orig_mod", "_checkpoint_wrapped_module")
"""Parts that torch.compile and the wrapper for activation checkpoints add for a block of the model.

A ``state_dict`` has the first and lacks the second; ``get_model_state_dict`` lacks both.
"""


def bare(name: str) -> str:
    """Return a parameter's name without the prefixes of wrappers, and without the parts that they add within it."""
    while name.startswith(WRAPPERS):
        name = name.partition(".")[2]
    if not any(part in name for part in _WITHIN):
        return name
    return ".".join(part for part in name.split(".") if part not in _WITHIN)


def is_saved(model: Any, name: str) -> bool:
    """Return whether a buffer is part of the model's state, as ``register_buffer`` was told (persistent)."""
    path, _, last = name.rpartition(".")
    return last not in model.get_submodule(path)._non_persistent_buffers_set


def named_optimizers(optimizers: list[Any]) -> list[tuple[str, Any]]:
    """Return the optimizers with the prefixes of their names: ``optimizer``, ``optimizer2`` and so on."""
    return [("optimizer" if number == 1 else f"optimizer{number}", held) for number, held in enumerate(optimizers, 1)]
