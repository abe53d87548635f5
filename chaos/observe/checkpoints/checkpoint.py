"""Read a checkpoint file without its framework, and refuse one that is not sound.

The content decides which registered reader (:mod:`chaos.observe.checkpoints.registered`) reads it. A format that no
reader knows is no damage.

MindSpore 2.10 was seen to load these without a message: content shorter or longer than the shape needs, or none at
all; a missing slice; a duplicate name; fields that the format does not have; a wrong CRC, unless asked to check it.
PyTorch 2.13 looks at no CRC. Here every byte must have a meaning, or ``CheckpointError`` names the place. A file
without a CRC cannot show two changes: one inside a tensor's content, and a cut exactly between two records. The digests
and the names show these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.observe.checkpoints.appended import APPENDED
from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.checkpoint_reader import HEAD
from chaos.observe.checkpoints.parsed import Crc, Parsed, Piece, Plain
from chaos.observe.checkpoints.registered import format_named, reader_of, registered_readers
from chaos.observe.checkpoints.tensor import Tensor

__all__ = ["Checkpoint", "CheckpointError", "CheckpointNotSupported", "Tensor", "read_checkpoint"]

DEFAULT_LIMIT = 16 << 30

_SHOWN = 9
"""Bytes of an unknown format that the message shows."""

# Also a parameter of every optimizer; the appended value takes its place in the file.
_ALSO_PARAMETER = frozenset({"global_step"})


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint file that has been read to its last byte.

    ``tensors`` are the parameters and optimizer state, in the order of the file. ``values`` are the plain values beside
    the tensors; in a file of MindSpore these are the scalars and texts that are appended (``epoch_num``, ``step_num``,
    ``batch_num``, ``cur_rank``, ``global_step``, ``loss_scale``). ``global_step`` is in both: it is a parameter of the
    optimizer, and ``save_checkpoint`` writes an appended one in its place. ``__exception_save__`` is rarely there:
    MindSpore 2.10 takes it out before it writes. ``places`` holds the place in the file of the content of each tensor
    that lies there in order. ``crc`` says whether a stored checksum was compared. ``partial``: parts of the state that
    other ranks save are left out. ``about_save`` are whole numbers about the save, as the reader of the format
    understands them (``Parsed.numbers``). ``shards`` and ``pieces`` are those of ``Parsed``.
    """

    path: Path
    tensors: dict[str, Tensor]
    values: dict[str, Plain]
    places: Mapping[str, Span]
    crc: Crc
    partial: bool = False
    about_save: Mapping[str, int] | None = None
    shards: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    pieces: tuple[Piece, ...] = ()

    def number(self, name: str) -> int | None:
        """Return a whole number stored under ``name``, plain or a tensor of one integer; None if there is none."""
        if self.about_save is not None and (name in self.about_save or name in APPENDED):
            return self.about_save.get(name)
        value = self.values.get(name)
        if value is None and name in self.tensors:
            value = self.tensors[name].scalar
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def numbers(self) -> dict[str, int]:
        """Every whole number in the file, by its name."""
        names = {*self.values, *self.tensors, *(self.about_save or ())}
        return {name: number for name in names if (number := self.number(name)) is not None}


def read_checkpoint(path: Path, *, limit: int = DEFAULT_LIMIT) -> Checkpoint:
    """Read a checkpoint file; the content decides its format.

    ``limit`` is the size in bytes above which a file is not read. The content is read in blocks and not kept: the
    memory needed is a few blocks (``chaos.observe.checkpoints.blocks``), whatever the size of the file, and the
    description of each tensor. Nothing is unpickled or run. Raises CheckpointError when the file is missing, unreadable
    or damaged, and its subclass CheckpointNotSupported when it is over the limit, holds a kind of value that its
    reader does not know, or is in a format that no reader knows.
    """
    try:
        return _sort(path, _parse(path, limit))
    except UnreadableFile as error:
        raise CheckpointError(path, str(error.strerror)) from error
    except OSError as error:
        raise CheckpointError(path, f"cannot be read: {error.strerror or error}") from error


def _parse(path: Path, limit: int) -> Parsed:
    with open_plain(path) as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if size == 0:
            raise CheckpointError(path, "the file is empty")
        if size > limit:
            raise CheckpointNotSupported(path, f"has {size} bytes, over the limit of {limit}")
        head = stream.read(HEAD)
        stream.seek(0)
        if (reader := reader_of(head, size)) is not None:
            return reader.read(path, stream, size)
    if (named := format_named(path.name)) is None:
        known = ", ".join(registered.reader.about for registered in registered_readers())
        raise CheckpointNotSupported(path, f"starts with {_shown(head)}: none of the known formats ({known})", 0)
    if not any(head[:_SHOWN]):
        raise CheckpointError(path, "starts with zeros: the content was never written, or was lost", 0)
    raise CheckpointError(path, f"is named as {named} and starts with {_shown(head)}, as none does", 0)


def _shown(head: bytes) -> str:
    return head[:_SHOWN].hex()


def _sort(path: Path, parsed: Parsed) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    values: dict[str, Plain] = {}
    for name, entry in parsed.entries.items():
        if not isinstance(entry, Tensor):
            values[name] = entry
            continue
        scalar = entry.scalar if name in APPENDED and parsed.numbers is None else None
        if scalar is not None:
            values[name] = scalar
        if scalar is None or name in _ALSO_PARAMETER:
            tensors[name] = entry
    return Checkpoint(
        path,
        tensors,
        values,
        parsed.places,
        parsed.crc,
        parsed.partial,
        parsed.numbers,
        parsed.shards,
        parsed.pieces,
    )
