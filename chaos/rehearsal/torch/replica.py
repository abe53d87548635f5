"""DistributedDataParallel that sends no weights at its beginning, which would put right what a repair has missed."""

from __future__ import annotations

import inspect
from typing import Any

from torch.nn.parallel import DistributedDataParallel, distributed

_AT_BEGINNING = ("_verify_param_shape_across_processes", "_sync_module_states")
"""What the constructor calls before PyTorch 2.6, which has no option ``init_sync`` (read in 2.1.2 and 2.5.1)."""


def replica(model: Any) -> Any:
    """Return the model as one replica of several, with its weights as they are."""
    if "init_sync" in inspect.signature(DistributedDataParallel.__init__).parameters:
        return DistributedDataParallel(model, init_sync=False)
    kept = {name: getattr(distributed, name) for name in _AT_BEGINNING}
    try:
        for name in kept:
            setattr(distributed, name, _do_nothing)
        return DistributedDataParallel(model)
    finally:
        for name, function in kept.items():
            setattr(distributed, name, function)


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """Stand for a function of the constructor."""
