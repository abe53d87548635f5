"""The form of a checkpoint reader: it recognises files of one format by their content, and reads them.

Readers are registered in the group ``chaos.checkpoints`` (:mod:`chaos.observe.checkpoints.registered`).
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from chaos.observe.checkpoints.parsed import Parsed

HEAD = 512
"""Bytes from the start of a file by which its format is recognised; fewer where the file is shorter."""


class CheckpointReader(ABC):
    """A reader of one format of checkpoint files.

    ``name`` is the name under which it is registered. ``about`` names the format in messages. ``whole_directory`` is
    the file by which a directory that is one checkpoint is known; None where each checkpoint is a file.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    whole_directory: ClassVar[str | None] = None

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
