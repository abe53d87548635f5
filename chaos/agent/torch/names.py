"""The names of weights and buffers in a module, as its checkpoints have them."""

from __future__ import annotations

from typing import Any

WRAPPERS = ("module.", "_orig_mod.")
"""Prefixes that DistributedDataParallel and torch.compile add to the names of a model's parameters."""


def bare(name: str) -> str:
    """Return a parameter's name without the prefixes of wrappers."""
    while name.startswith(WRAPPERS):
        name = name.partition(".")[2]
    return name


def is_saved(model: Any, name: str) -> bool:
    """Return whether a buffer is part of the model's state, as ``register_buffer`` was told (persistent)."""
    path, _, last = name.rpartition(".")
    return last not in model.get_submodule(path)._non_persistent_buffers_set


def named_optimizers(optimizers: list[Any]) -> list[tuple[str, Any]]:
    """Return the optimizers with the prefixes of their names: ``optimizer``, ``optimizer2`` and so on."""
    return [("optimizer" if number == 1 else f"optimizer{number}", held) for number, held in enumerate(optimizers, 1)]
