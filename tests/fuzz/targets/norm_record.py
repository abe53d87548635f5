"""abnormal_global_norm.json, which the job writes. Documented: NormRecordError."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.observe.checkpoints.norm_record import NAME, NormRecordError, read_norm_record
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Values as often as bytes."""
    if random.random() < 0.5:
        return mutate_bytes(random, corpus)
    return mutate_json(random, random.choice(corpus))


def check(content: bytes, folder: Path) -> None:
    """Read it: steps and norms that are numbers."""
    path = folder / NAME
    path.write_bytes(content)
    try:
        record = read_norm_record(path)
    except NormRecordError:
        return
    assert all(step >= 0 and not any(map(math.isnan, norms)) for step, norms in record.items())


TARGET = Target("norm_record", mutate, check)
