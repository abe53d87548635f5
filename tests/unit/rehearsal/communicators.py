"""Ranks of a communicator in the threads of one process, as several tests need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy

from chaos.rehearsal.device.communicator import Communicator

SECRET = b"s3cret"
SECONDS = 60.0
LIMIT = 300.0
"""The time limit of joining and of a collective: what has ended within SECONDS has not ended by it."""


LetLimitPass = Callable[[Iterable[Communicator]], None]
"""Let LIMIT pass for these ranks now, of which each may wait for something."""


class Group:
    """Ranks of one communicator, each in a thread of its own."""

    def __init__(self, directory: Path, pool: ThreadPoolExecutor) -> None:
        self.directory = directory
        self.strangers: list[str] = []
        self.pool = pool

    def rank(self, rank: int, ranks: int = 4, *, secret: bytes = SECRET, limit: float = LIMIT) -> Communicator:
        return Communicator(
            rank, range(ranks), str(self.directory), secret, limit_seconds=limit, on_refused=self.strangers.append
        )

    def join(self, ranks: int = 4) -> list[Communicator]:
        made = [self.rank(rank, ranks) for rank in range(ranks)]
        for joined in [self.pool.submit(communicator.join) for communicator in made]:
            joined.result(SECONDS)
        return made

    def reduce(self, ranks: list[Communicator], arrays: list[Any]) -> list[Any]:
        futures = [
            self.pool.submit(communicator.all_reduce, array) for communicator, array in zip(ranks, arrays, strict=True)
        ]
        return [future.result(SECONDS) for future in futures]


def floats(seed: int, size: int = 1000) -> Any:
    """Values of very different sizes, whose sum depends on the order."""
    generator = numpy.random.Generator(numpy.random.PCG64(seed))
    return (generator.normal(size=size) * 10.0 ** generator.integers(-6, 6, size)).astype("float32")


def unprotected(group: Group, ranks: int) -> list[Communicator]:
    """Ranks that nobody stops: they wait for one that has gone for a moment only."""
    made = [
        Communicator(
            rank,
            range(ranks),
            str(group.directory),
            SECRET,
            limit_seconds=LIMIT,
            on_refused=group.strangers.append,
            deserted_seconds=0.2,
        )
        for rank in range(ranks)
    ]
    for joined in [group.pool.submit(communicator.join) for communicator in made]:
        joined.result(SECONDS)
    return made
