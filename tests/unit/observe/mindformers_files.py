"""Saves of MindFormers' new layout, written with no code of the readers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any


def write_safetensors(path: Path, floats: dict[str, list[float]], integers: dict[str, int] | None = None) -> None:
    """Tensors of Float32, and single Int32 as MindSpore saves a step counter."""
    header: dict[str, Any] = {"__metadata__": {"format": "ms"}}
    data = b""
    parts = [(name, "F32", [len(values)], struct.pack(f"<{len(values)}f", *values)) for name, values in floats.items()]
    parts += [(name, "I32", [1], struct.pack("<i", value)) for name, value in (integers or {}).items()]
    for name, kind, shape, content in parts:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_iteration(root: Path, step: int, *, ranks: int = 1, weight: float = 1.0, prefix: str = "tiny") -> Path:
    """One save of every rank, named as the newest one. Returns its directory."""
    directory = root / f"iteration_{step:08d}"
    storage = {}
    for rank in range(ranks):
        names = [f"{prefix}-{part}-{rank:07d}-{ranks:07d}.safetensors" for part in ("model", "opt")]
        write_safetensors(directory / names[0], {"a.weight": [weight, rank, step]})
        write_safetensors(directory / names[1], {"moments.a.weight": [0.5, rank, step]}, {"global_step": step})
        for part, name in zip(("a.weight", "moments.a.weight"), names, strict=True):
            storage[f"('{part}', ({rank},))"] = [{"file_name": name, "storage_rank": rank, "rank_group": [rank]}]
    common = {"epoch_num": 1, "step_num": step, "global_step": step, "loss_scale": None, "global_batch_size": 2}
    (directory / "common.json").write_text(json.dumps(common, indent=4))
    if ranks > 1:
        (directory / "metadata.json").write_text(json.dumps({"state_dict_metadata": {}, "storage_data": storage}))
    (root / "latest_checkpointed_iteration.txt").write_text(str(step))
    return directory
