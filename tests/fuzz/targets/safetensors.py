"""Checkpoint files, ``.safetensors``. Documented: CheckpointError."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random

from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target
from tests.fuzz.targets.checkpoint import check


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """The header as JSON, with its length put right; or any bytes."""
    if random.random() < 0.4:
        return mutate_bytes(random, corpus)
    content = random.choice(corpus)
    (length,) = struct.unpack("<Q", content[:8])
    header = mutate_json(random, content[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


TARGET = Target("safetensors", mutate, check)
