"""run.json: the run's identity for ``heal``, and what a report tells of its origin. Documented: RunDirectoryError."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.store.directory import RUN_FILE, RunDirectoryError, read_run
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Values more often than bytes."""
    if random.random() < 0.3:
        return mutate_bytes(random, corpus)
    return mutate_json(random, random.choice(corpus))


def check(content: bytes, folder: Path) -> None:
    """Read it."""
    (folder / RUN_FILE).write_bytes(content)
    try:
        record = read_run(folder)
    except RunDirectoryError as error:
        assert RUN_FILE in str(error)
        return
    assert isinstance(record["token"], str) and record["token"]


TARGET = Target("run_file", mutate, check)
