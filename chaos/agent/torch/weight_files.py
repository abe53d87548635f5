"""The files of safetensors, in which trainers keep weights beside files of ``torch.save``.

``save_model`` and ``load_model`` go through the two functions that are hooked. A file that is opened by ``safe_open``
is loaded, whichever of its tensors are read.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from chaos.agent.torch.files import Files


def hook_weight_files(files: Files, module: ModuleType) -> None:
    """Record every file that is saved and loaded through ``save_file`` and ``load_file`` of ``safetensors.torch``."""
    save, load = module.save_file, module.load_file

    @functools.wraps(save)
    def save_with_agent(tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        return files.save(tensors, filename, lambda: save(tensors, filename, *args, **kwargs))

    @functools.wraps(load)
    def load_with_agent(filename: Any, *args: Any, **kwargs: Any) -> Any:
        return files.load(filename, lambda: load(filename, *args, **kwargs))

    module.save_file, module.load_file = save_with_agent, load_with_agent  # type: ignore[attr-defined]


def hook_opened_files(files: Files, module: ModuleType) -> None:
    """Record every file that is opened by ``safetensors.safe_open``, for the modules that take the name from there.

    An open file stays what it is, and ``isinstance`` goes on to work.
    """
    opened: Any = getattr(module, "safe_open", None)
    if opened is None:
        return

    class _AsOpened(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, opened)

    class safe_open(metaclass=_AsOpened):
        def __new__(cls, filename: Any, *args: Any, **kwargs: Any) -> Any:
            return files.load(filename, lambda: opened(filename, *args, **kwargs))

    safe_open.__doc__ = opened.__doc__
    module.safe_open = safe_open  # type: ignore[attr-defined]
