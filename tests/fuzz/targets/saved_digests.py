"""Digests that were kept in place of a large checkpoint. Documented: CheckpointError."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.layout import DIGESTED
from chaos.observe.checkpoints.saved_state import read_saved_state
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Values as often as bytes."""
    if random.random() < 0.5:
        return mutate_bytes(random, corpus)
    return mutate_json(random, random.choice(corpus))


def check(content: bytes, folder: Path) -> None:
    """Read it."""
    path = folder / f"ttp_rank_0-1_5.ckpt{DIGESTED}"
    path.write_bytes(content)
    try:
        state = read_saved_state(path)
    except CheckpointError as error:
        assert path.name in str(error)
        return
    assert all(isinstance(digest, str) for digest in state.digests.values())


TARGET = Target("saved_digests", mutate, check)
