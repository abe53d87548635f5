"""Checkpoint files, ``numpy.savez``. Documented: CheckpointError."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.observe.checkpoints.tensor import byte_count
from chaos.observe.checkpoints.zipped.npz_reader import MAX_TIMES
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target
from tests.kit.npz import archive


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """A sound archive around a changed array, or any bytes."""
    if random.random() < 0.4:
        return mutate_bytes(random, corpus)
    with zipfile.ZipFile(io.BytesIO(random.choice(corpus))) as packed:
        arrays = {name.removesuffix(".npy"): packed.read(name) for name in packed.namelist()}
    name = random.choice(sorted(arrays))
    arrays[name] = mutate_bytes(random, [arrays[name]])
    return archive(arrays, random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def check(content: bytes, folder: Path) -> None:
    """Read it, and everything that a check asks of it."""
    path = folder / "step_4.npz"
    path.write_bytes(content)
    try:
        checkpoint = read_checkpoint(path)
    except CheckpointError as error:
        assert path.name in str(error) and len(str(error)) < 2000
        return
    size = sum(byte_count(tensor.dtype, tensor.shape) for tensor in checkpoint.tensors.values())
    assert size <= MAX_TIMES * len(content) + (256 << 20)
    assert all(place.end <= len(content) for place in checkpoint.places.values())
    assert read_saved_state(path).digests.keys() >= checkpoint.tensors.keys()


TARGET = Target("npz", mutate, check)
