"""Saving and loading of checkpoints, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def save_checkpoint(save_obj: Any, ckpt_file_name: str, integrated_save: bool = True, **kwargs: Any) -> None:
    """Write the parameters and what is appended to them."""
    del integrated_save
    content = {one.name: one.values for one in save_obj.get_parameters()}
    Path(ckpt_file_name).write_text(json.dumps({**content, **(kwargs.get("append_dict") or {})}), "utf-8")


def load_checkpoint(ckpt_file_name: str) -> dict[str, Any]:
    """Read a checkpoint."""
    content: dict[str, Any] = json.loads(Path(ckpt_file_name).read_text("utf-8"))
    return content
