"""Checkpoint files, ``torch.save``. Documented: CheckpointError."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.observe.checkpoints.tensor import byte_count
from chaos.observe.checkpoints.torch.storages import MAX_TIMES
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target
from tests.kit.checkpoints.torch_save import zipped


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """A sound archive around a changed pickle, or any bytes."""
    if random.random() < 0.4:
        return mutate_bytes(random, corpus)
    with zipfile.ZipFile(io.BytesIO(random.choice(corpus))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    pickled = next(name for name in members if name.endswith("/data.pkl"))
    members[pickled] = mutate_bytes(random, [members[pickled]])
    return zipped(members)


def check(content: bytes, folder: Path) -> None:
    """Read it, and everything that a check asks of it."""
    path = folder / "step_4.pt"
    path.write_bytes(content)
    try:
        checkpoint = read_checkpoint(path)
    except CheckpointError as error:
        assert path.name in str(error) and len(str(error)) < 2000
        return
    tensors = checkpoint.tensors.values()
    assert sum(byte_count(tensor.dtype, tensor.shape) for tensor in tensors) <= MAX_TIMES * len(content) + (64 << 20)
    assert read_saved_state(path).digests.keys() >= checkpoint.tensors.keys()


TARGET = Target("torch_save", mutate, check)
