"""Saves of MindFormers' new layout, written with no code of the readers."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Part = tuple[str, str, Sequence[int], bytes]
"""A tensor: its name, its type as safetensors calls it, its shape, its content."""


def safetensors_of(parts: Iterable[Part]) -> bytes:
    """A file of these tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "ms"}}
    data = b""
    for name, kind, shape, content in parts:
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_safetensors(path: Path, floats: dict[str, list[float]], integers: dict[str, int] | None = None) -> None:
    """Tensors of Float32, and single Int32 as MindSpore saves a step counter."""
    parts: list[Part] = [
        (name, "F32", [len(values)], struct.pack(f"<{len(values)}f", *values)) for name, values in floats.items()
    ]
    parts += [(name, "I32", [1], struct.pack("<i", value)) for name, value in (integers or {}).items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors_of(parts))


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


def write_divided(root: Path, step: int) -> Path:
    """One save of three ranks without redundancy. All hold a.weight, which rank 1 has saved; ranks 0 and 2 have saved a
    part of the optimizer's state each, so that files are counted otherwise than ranks. Returns its directory."""
    directory = root / f"iteration_{step:08d}"
    storage = {}
    for name, part, rank, holders in (
        ("tiny-model-0000000-0000001.safetensors", "a.weight", 1, [0, 1, 2]),
        ("tiny-opt-0000000-0000002.safetensors", "moments.a.weight", 0, [0, 1]),
        ("tiny-opt-0000001-0000002.safetensors", "moments.b.weight", 2, [2]),
    ):
        write_safetensors(directory / name, {part: [1.0, rank, step]})
        storage[f"('{part}', (0,))"] = [{"file_name": name, "storage_rank": rank, "rank_group": holders}]
    common = {"epoch_num": 1, "step_num": step, "global_step": step, "loss_scale": None, "global_batch_size": 2}
    (directory / "common.json").write_text(json.dumps(common))
    (directory / "metadata.json").write_text(json.dumps({"state_dict_metadata": {}, "storage_data": storage}))
    (root / "latest_checkpointed_iteration.txt").write_text(str(step))
    return directory
