"""All installed checkpoint readers: those of this package first, so that no other can take over their files."""

from __future__ import annotations

import io
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

from chaos.base.registry import package_of, registry
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.checkpoint_reader import CheckpointReader
from chaos.observe.checkpoints.parsed import Parsed

GROUP = "checkpoints"


class RegisteredReader(NamedTuple):
    """A reader, and the other package that it comes from; None for a reader of this package."""

    reader: CheckpointReader
    package: str | None

    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether the reader recognises a file of ``size`` bytes by its first bytes."""
        if self.package is None:
            return self.reader.recognises(head, size)
        try:
            return self.reader.recognises(head, size)
        except Exception:  # a defect of the other package: it has no word about this file
            return False

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read a file. Raises CheckpointError; a defect of another package's reader is CheckpointNotSupported."""
        if self.package is None:
            return self.reader.read(path, stream, size)
        try:
            return self.reader.read(path, stream, size)
        except (CheckpointError, OSError):
            raise
        except Exception as error:
            problem = f"the reader {self.reader.name!r} of {self.package} has failed: {type(error).__name__}: {error}"
            raise CheckpointNotSupported(path, problem) from error


@cache
def registered_readers() -> tuple[RegisteredReader, ...]:
    """Return every reader; readers of this package come first.

    Raises chaos.base.registry.RegistryError if a reader cannot be loaded, or is no CheckpointReader.
    """
    readers = [_registered(name) for name in registry(GROUP).some_names()]
    return tuple(sorted(readers, key=lambda registered: registered.package is not None))


def _registered(name: str) -> RegisteredReader:
    members = registry(GROUP)
    reader = members.load(name)
    if not isinstance(reader, CheckpointReader):
        raise members.misfit(name, "chaos.observe.checkpoints.checkpoint_reader.CheckpointReader")
    return RegisteredReader(reader, package_of(GROUP, name))


def reader_of(head: bytes, size: int) -> RegisteredReader | None:
    """Return the reader that recognises a file of ``size`` bytes by its first bytes; None for an unknown format."""
    return next((registered for registered in registered_readers() if registered.recognises(head, size)), None)


def format_named(name: str) -> str | None:
    """Return the format that alone bears such a file name, in words; None where the name says nothing."""
    return next((registered.reader.about for registered in registered_readers() if registered.reader.names(name)), None)


def directory_marks() -> tuple[str, ...]:
    """Return the names of files by which a directory that is one checkpoint is known."""
    marks = (registered.reader.whole_directory for registered in registered_readers())
    return tuple(mark for mark in marks if mark is not None)


def file_endings() -> tuple[str, ...]:
    """Return the endings that the names of checkpoint files usually have."""
    return tuple({ending: None for registered in registered_readers() for ending in registered.reader.endings})


def mark_of(part: Path) -> Path | None:
    """Return the file by which the directory is known that a file is a part of; None for any other file."""
    readers = (registered.reader for registered in registered_readers())
    marks = (reader.whole_directory for reader in readers if reader.is_part(part.name))
    return next((part.with_name(mark) for mark in marks if mark is not None), None)


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files that a checkpoint consists of: itself, and what lies beside it in a directory that is one."""
    readers = (registered.reader for registered in registered_readers())
    return next((reader.files(path) for reader in readers if reader.whole_directory == path.name), (path,))


def is_broken_off(names: Collection[str]) -> bool:
    """Return whether a directory with files of these names is a checkpoint that was not finished."""
    return any(registered.reader.is_broken_off(names) for registered in registered_readers())


def is_part(name: str, rank: int | None = None) -> bool:
    """Return whether a file of this name is a part of a directory that is one checkpoint: of a rank, if given."""
    return any(registered.reader.is_part(name, rank) for registered in registered_readers())
