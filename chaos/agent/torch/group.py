"""The process group of PyTorch: the moment when all ranks have met, after which they can train."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from chaos.agent.training import Training


def hook_group(training: Training, module: ModuleType) -> None:
    """Record when ``init_process_group`` has returned, with the timeout that the script gives it."""
    begin: Callable[..., Any] = module.init_process_group

    @functools.wraps(begin)
    def begin_with_agent(*args: Any, **kwargs: Any) -> Any:
        result = begin(*args, **kwargs)
        timeout: Any = kwargs.get("timeout", args[2] if len(args) > 2 else None)
        training.joined(timeout.total_seconds() if hasattr(timeout, "total_seconds") else None)
        return result

    module.init_process_group = begin_with_agent  # type: ignore[attr-defined]
