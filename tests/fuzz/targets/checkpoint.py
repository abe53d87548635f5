"""Checkpoint files, ``.ckpt``. Documented: CheckpointError."""

from __future__ import annotations

from pathlib import Path

from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.observe.checkpoints.tensor import byte_count
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it, and everything that a check asks of it."""
    path = folder / "ttp_rank_0-1_5.ckpt"
    path.write_bytes(content)
    try:
        checkpoint = read_checkpoint(path)
    except CheckpointError as error:
        assert path.name in str(error) and len(str(error)) < 2000
        return
    assert sum(byte_count(tensor.dtype, tensor.shape) for tensor in checkpoint.tensors.values()) <= len(content)
    state = read_saved_state(path)
    assert state.digests.keys() == checkpoint.tensors.keys()


TARGET = Target("checkpoint", mutate_bytes, check)
