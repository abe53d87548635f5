"""Directories deeper than any path can name, as a job may leave them, made and removed level by level."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEVELS = 1500
LEFT = "left.tmp"
"""The file in the last of the directories."""

_NAME = "d"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def deep_directory(place: Path, levels: int = LEVELS, name: str = _NAME) -> Iterator[Path]:
    """So many directories, each in the other, below the directory ``place``, and a file in the last."""
    place.mkdir(parents=True, exist_ok=True)
    here = os.open(place, _OPEN)
    try:
        for _ in range(levels):
            os.mkdir(name, dir_fd=here)
            here = _instead(here, name)
        os.close(os.open(LEFT, os.O_WRONLY | os.O_CREAT, dir_fd=here))
        yield place
        os.unlink(LEFT, dir_fd=here)
        for _ in range(levels):
            here = _instead(here, "..")
            os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)


def _instead(here: int, name: str) -> int:
    there = os.open(name, _OPEN, dir_fd=here)
    os.close(here)
    return there
