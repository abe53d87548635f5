"""Directories of ``torch.distributed.checkpoint``: the metadata, beside sound files. Documented: CheckpointError."""

from __future__ import annotations

from pathlib import Path

from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.observe.checkpoints.tensor import byte_count
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target
from tests.kit.checkpoints.torch_dcp import job_directory

_SOUND = job_directory(4)


def check(content: bytes, folder: Path) -> None:
    """Read it, and everything that a check asks of it."""
    path = _SOUND.write(folder)
    path.write_bytes(content)
    try:
        checkpoint = read_checkpoint(path)
    except CheckpointError as error:
        assert str(folder) in str(error) and len(str(error)) < 2000
        return
    size = sum(len(stream) for stream in _SOUND.streams.values())
    assert sum(byte_count(tensor.dtype, tensor.shape) for tensor in checkpoint.tensors.values()) <= size
    assert read_saved_state(path).digests.keys() >= checkpoint.tensors.keys()


TARGET = Target("torch_dcp", mutate_bytes, check)
