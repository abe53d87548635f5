"""The files of safetensors, in which trainers keep weights beside files of ``torch.save``.

``save_model`` and ``load_model`` go through the two functions that are hooked. Not seen is a file that is read through
``safe_open``, as a published model is.
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
        return files.save(filename, lambda: save(tensors, filename, *args, **kwargs))

    @functools.wraps(load)
    def load_with_agent(filename: Any, *args: Any, **kwargs: Any) -> Any:
        return files.load(filename, lambda: load(filename, *args, **kwargs))

    module.save_file, module.load_file = save_with_agent, load_with_agent  # type: ignore[attr-defined]
