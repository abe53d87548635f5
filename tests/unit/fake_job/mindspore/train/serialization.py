"""Saving and loading of checkpoints, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: str,
    integrated_save: bool = True,
    async_save: bool = False,
    append_dict: dict[str, Any] | None = None,
) -> None:
    """Write the parameters and what is appended to them; the order of the arguments is MindSpore's."""
    del integrated_save
    arguments = (ckpt_file_name, save_obj, append_dict or {})
    if not async_save:
        _exec_save(*arguments)
        return
    wait_for_background()
    _background.append(Thread(target=_exec_save, args=arguments))
    _background[-1].start()


_background: list[Thread] = []


def wait_for_background() -> None:
    """Wait for the file that is written in the background, as MindSpore does before the next one."""
    while _background:
        _background.pop().join()


def _exec_save(ckpt_file_name: str, save_obj: Any, appended: dict[str, Any]) -> None:
    """Write a whole file."""
    content: dict[str, Any] = {}
    unfinished = Path(ckpt_file_name).with_suffix(".tmp")
    for parameter in save_obj.get_parameters():
        _write_parameter_data(parameter.name, parameter.values, content, unfinished)
    content.update(appended)
    unfinished.write_text(json.dumps(content), "utf-8")
    unfinished.rename(ckpt_file_name)


def _write_parameter_data(name: str, values: Any, content: dict[str, Any], file: Path) -> None:
    """Write one parameter, behind those before it."""
    content[name] = values
    file.write_text(json.dumps(content), "utf-8")


def load_checkpoint(ckpt_file_name: str) -> dict[str, Any]:
    """Read a checkpoint."""
    content: dict[str, Any] = json.loads(Path(ckpt_file_name).read_text("utf-8"))
    return content
