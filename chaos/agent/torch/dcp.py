"""The directories of ``torch.distributed.checkpoint``: each rank writes its part, and ``.metadata`` is written last.

A save and a load are recorded under the directory, by each rank that takes part. A storage in the cloud, and one that
writes files of another form (Hugging Face), is not recorded.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Callable

from chaos.agent.torch.files import Files

_SAVES = ("save", "save_state_dict")
_LOADS = ("load", "load_state_dict")
_OTHER_FORMS = ("HuggingFace", "QuantizedHuggingFace")


def hook_dcp_saves(files: Files, module: ModuleType) -> None:
    """Record the saves through ``save``, ``async_save`` and the deprecated ``save_state_dict``."""
    for name in _SAVES:
        if hasattr(module, name):
            setattr(module, name, _saving(files.save_directory, getattr(module, name)))
    if hasattr(module, "async_save"):
        module.async_save = _saving(files.save_directory_later, module.async_save)  # type: ignore[attr-defined]


def hook_dcp_loads(files: Files, module: ModuleType) -> None:
    """Record the loads through ``load`` and the deprecated ``load_state_dict``."""
    for name in _LOADS:
        if hasattr(module, name):
            setattr(module, name, _loading(files, getattr(module, name)))


def _saving(record: Callable[[str, Callable[[], Any]], Any], save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def save_with_agent(*args: Any, **kwargs: Any) -> Any:
        directory = directory_of(args, kwargs, "storage_writer")
        if directory is None or kwargs.get("use_collectives") is False:  # then each rank has metadata of its own
            return save(*args, **kwargs)
        return record(directory, lambda: save(*args, **kwargs))

    return save_with_agent


def _loading(files: Files, load: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load)
    def load_with_agent(*args: Any, **kwargs: Any) -> Any:
        directory = directory_of(args, kwargs, "storage_reader")
        if directory is None:
            return load(*args, **kwargs)
        state = args[0] if args else kwargs.get("state_dict")
        return files.load_directory(directory, state, lambda: load(*args, **kwargs))

    return load_with_agent


def directory_of(args: Sequence[Any], kwargs: Mapping[str, Any], storage_key: str) -> str | None:
    """Return the directory that a call names, itself or by its storage; None where it is none of this form."""
    storage = kwargs.get(storage_key, args[1] if len(args) > 1 else None)
    if any(base.__name__.startswith(_OTHER_FORMS) for base in type(storage).__mro__):
        return None
    target = kwargs.get("checkpoint_id")
    for name in ("checkpoint_id", "path"):
        target = getattr(storage, name, None) if target is None else target
    if not isinstance(target, (str, os.PathLike)):
        return None
    directory = os.fsdecode(target)
    return directory if directory and "://" not in directory else None
