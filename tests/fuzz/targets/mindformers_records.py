"""The small files that MindFormers keeps beside its checkpoints. Documented: CheckpointError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.mindformers_records import (
    COMMON,
    META,
    METADATA,
    TRACKER,
    read_common,
    read_meta,
    read_metadata,
    read_tracker,
)
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target

READERS: dict[str, Callable[[Path], object]] = {
    META: read_meta,
    COMMON: read_common,
    METADATA: read_metadata,
    TRACKER: read_tracker,
}


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Values as often as bytes."""
    content = random.choice(corpus)
    if random.random() < 0.5 or not content.startswith(b"{"):
        return mutate_bytes(random, corpus)
    return mutate_json(random, content)


def check(content: bytes, folder: Path) -> None:
    """Read it as each of them."""
    for name, read in READERS.items():
        path = folder / name
        path.write_bytes(content)
        try:
            read(path)
        except CheckpointError as error:
            assert name in str(error) and len(str(error)) < 2000


TARGET = Target("mindformers_records", mutate, check)
