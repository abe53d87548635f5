"""The form of a checkpoint reader: it recognises files of one format by their content, and reads them.

Readers are registered in the group ``chaos.checkpoints`` (:mod:`chaos.observe.checkpoints.registered`).
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from chaos.observe.checkpoints.parsed import Parsed

HEAD = 512
"""Bytes from the start of a file by which its format is recognised; fewer where the file is shorter."""


class CheckpointReader(ABC):
    """A reader of one format of checkpoint files.

    ``name`` is the name under which it is registered. ``about`` names the format in messages. ``whole_directory`` is
    the file by which a directory that is one checkpoint is known; None where each checkpoint is a file. ``endings`` are
    those of the names that such files usually have: where nobody has recorded which files were saved, only these are
    looked into.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    whole_directory: ClassVar[str | None] = None
    endings: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether a file of ``size`` bytes that starts with ``head`` is in this format. Must not raise."""

    @abstractmethod
    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read the whole file.

        Args:
            path: the file, for errors and for files beside it.
            stream: the open file, at byte 0.
            size: the file's size in bytes.

        Raises:
            CheckpointError: the content is damaged: bytes are missing, or contradict each other or a checksum.
            CheckpointNotSupported: the content may be sound, and this reader does not know it.
        """

    def names(self, name: str) -> bool:
        """Return whether only files of this format bear a name, so that other content in such a file is damage.

        Most endings (``.ckpt``, ``.pt``, ``.bin``) are used by several programs and say nothing.
        """
        del name
        return False

    def files(self, path: Path) -> tuple[Path, ...]:
        """Return the files that the checkpoint ``path`` consists of."""
        return (path,)

    def is_whole(self, tail: bytes) -> bool:
        """Return whether a file that ends with ``tail``, at most 64 bytes, can be finished: a writer may be at it."""
        del tail
        return True

    def is_broken_off(self, names: Collection[str]) -> bool:
        """Return whether a directory with files of these names is an unfinished checkpoint of several files."""
        del names
        return False

    def is_part(self, name: str, rank: int | None = None) -> bool:
        """Return whether a file of this name is a part of a directory that is one checkpoint: of a rank, if given."""
        del name, rank
        return False
