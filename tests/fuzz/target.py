"""What is fuzzed: how bad input is made for it, and what must hold for every input."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

CPU_SECONDS = 60.0
"""Processor time that one input may take; a few milliseconds are usual."""

WALL_SECONDS = 300.0
"""For what waits without using the processor, such as the opening of a pipe."""

MEMORY = 1 << 30
"""Bytes by which the process may grow over all inputs of a target."""

SEEDS = Path(__file__).parent / "seeds"

MEMORY_FILES = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
"""Where inputs are checked: in memory where there is such a place. The ledger waits for the disk at every record."""


class Hang(Exception):
    """An input took longer than its time."""


@dataclass(frozen=True)
class Target:
    """A reader, or a command, under bad input.

    ``mutate`` makes an input from a random generator and the corpus, ``check`` hands it over: it returns where the
    input was read, or was refused with the error that the reader documents, and lets any other exception pass.
    """

    name: str
    mutate: Callable[[Random, Sequence[bytes]], bytes]
    check: Callable[[bytes, Path], None]

    def corpus(self) -> list[bytes]:
        """The seeds, in order of their names."""
        return [path.read_bytes() for path in sorted((SEEDS / self.name).iterdir())]


@contextmanager
def limits() -> Iterator[None]:
    """Let the process grow by MEMORY at most: beyond that an allocation fails with MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def timed() -> Iterator[None]:
    """Raise Hang in what runs longer than its time. In the main thread only."""

    def ring(number: int, _: FrameType | None) -> None:
        kind = "processor" if number == signal.SIGPROF else "wall"
        raise Hang(f"no answer after {CPU_SECONDS if kind == 'processor' else WALL_SECONDS:g} s of {kind} time")

    old = {number: signal.signal(number, ring) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in old.items():
            signal.signal(number, handler)
