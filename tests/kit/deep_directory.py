"""Directories deeper than any path can name, as a job may leave them.

To make them costs little, to remove them costs seconds: so tests of one process borrow the same ones, by a rename.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LEVELS = 2200
"""With a name of one letter the path of the last directory is longer than the 4,096 bytes that Linux takes."""

LEFT = "left.tmp"
"""The file in the last of the directories."""

_NAME = "d"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class DeepDirectories:
    """Very deep directories below ``home``, made when they are first wanted, and removed with :meth:`close`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._made = ExitStack()
        self._count = 0
        self._free: list[Path] = []

    @contextmanager
    def lent(self, place: Path) -> Iterator[Path]:
        """Directories of :data:`LEVELS` levels below the directory ``place``, and a file in the last."""
        place.mkdir(parents=True, exist_ok=True)
        deep = self._free.pop() if self._free else self._another()
        try:
            (deep / _NAME).rename(place / _NAME)
        except OSError as error:
            self._free.append(deep)
            if error.errno != errno.EXDEV:
                raise
            with deep_directory(place):  # another file system: nothing can be lent there
                yield place
            return
        opened = os.open(place, _OPEN)  # a test may move the place
        try:
            yield place
            os.rename(_NAME, deep / _NAME, src_dir_fd=opened)
        finally:
            os.close(opened)
        self._free.append(deep)

    def _another(self) -> Path:
        self._count += 1
        return self._made.enter_context(deep_directory(self._home / str(self._count)))

    def close(self) -> None:
        """Remove them."""
        self._made.close()


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
