"""Read a checkpoint file without MindSpore, and refuse one that is not sound.

MindSpore 2.10 was seen to load these without a message: content shorter or longer than the shape needs, or none at
all; a missing slice; a duplicate name; fields that the format does not have; a wrong CRC, unless asked to check it.
Here every byte must have a meaning, or ``CheckpointError`` names the place. A file without a CRC cannot show two
changes: one inside a tensor's content, and a cut exactly between two records. The digests and the names show these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.observe.checkpoints.appended import APPENDED
from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.ckpt_format import RECORD, parse_ckpt
from chaos.observe.checkpoints.parsed import Crc, Parsed
from chaos.observe.checkpoints.safetensors_format import LENGTH_SIZE, looks_like_safetensors, parse_safetensors
from chaos.observe.checkpoints.tensor import Tensor

__all__ = ["Checkpoint", "CheckpointError", "CheckpointNotSupported", "Tensor", "read_checkpoint"]

DEFAULT_LIMIT = 16 << 30

FORMATS = (".ckpt", ".safetensors")
"""Endings of the names of files that have to be in a format that is read."""

# Also a parameter of every optimizer; the appended value takes its place in the file.
_ALSO_PARAMETER = frozenset({"global_step"})


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint file that has been read to its last byte.

    ``tensors`` are the parameters and optimizer state, in the order of the file. ``values`` are the scalars and texts
    appended to the tensors (``epoch_num``, ``step_num``, ``batch_num``, ``cur_rank``, ``global_step``,
    ``loss_scale``). ``global_step`` is in both: it is a parameter of the optimizer, and ``save_checkpoint`` writes an
    appended one in its place. ``__exception_save__`` is rarely there: MindSpore 2.10 takes it out before it writes.
    ``places`` holds the place in the file of the content of each tensor that is not cut into slices. ``crc`` says
    whether a stored checksum was compared. ``partial``: parts of the state that other ranks save are left out.
    """

    path: Path
    tensors: dict[str, Tensor]
    values: dict[str, bool | int | float | str]
    places: dict[str, Span]
    crc: Crc
    partial: bool = False

    def number(self, name: str) -> int | None:
        """Return a whole number stored under ``name``, appended or a tensor of one integer; None if there is none."""
        value = self.values.get(name)
        if value is None and name in self.tensors:
            value = self.tensors[name].scalar
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_checkpoint(path: Path, *, limit: int = DEFAULT_LIMIT) -> Checkpoint:
    """Read a ``.ckpt`` or ``.safetensors`` file; the content decides which of the two it is.

    ``limit`` is the size in bytes above which a file is not read. The content is read in blocks and not kept: the
    memory needed is a few blocks (``chaos.observe.checkpoints.blocks``), whatever the size of the file, and the
    description of each tensor. Nothing is unpickled or run. Raises CheckpointError when the file is missing, unreadable
    or damaged, and its subclass CheckpointNotSupported when it is over the limit, holds a kind of value that this
    reader does not know, or has another name and another format.
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
        head = stream.read(LENGTH_SIZE + 1)
        stream.seek(0)
        if looks_like_safetensors(head, size):
            return parse_safetensors(path, stream, size)
        if head[0] == RECORD:
            return parse_ckpt(path, stream, size)
    if not any(head):
        raise CheckpointError(path, "starts with zeros: the content was never written, or was lost", 0)
    problem = f"starts with {head.hex()}: neither a MindSpore checkpoint nor safetensors"
    if path.suffix not in FORMATS:
        raise CheckpointNotSupported(path, f"{problem}, which are the formats that are read", 0)
    raise CheckpointError(path, f"{problem}; damaged, or encrypted", 0)


def _sort(path: Path, parsed: Parsed) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    values: dict[str, bool | int | float | str] = {}
    for name, entry in parsed.entries.items():
        if isinstance(entry, str):
            values[name] = entry
            continue
        scalar = entry.scalar if name in APPENDED else None
        if scalar is not None:
            values[name] = scalar
        if scalar is None or name in _ALSO_PARAMETER:
            tensors[name] = entry
    return Checkpoint(path, tensors, values, parsed.places, parsed.crc, parsed.partial)
