"""Reader of the files of ``torch.save``: a zip archive of ``data.pkl`` and one member for each storage.

``torch.load`` looks at no CRC (2.13: a flipped bit in a tensor is loaded without a word); here the CRC of every member
is compared. Files that were saved without CRCs (``torch.serialization.set_crc32_options(False)``) have a zero in place
of each. Not read are the format from before 1.6, which is no zip archive, files of a big-endian machine, and programs
of TorchScript. Source: PyTorch 2.13, torch/serialization.py.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import ClassVar

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported, UnknownContent
from chaos.observe.checkpoints.checkpoint_reader import CheckpointReader
from chaos.observe.checkpoints.parsed import Crc, Parsed, Plain
from chaos.observe.checkpoints.tensor import Tensor, TensorContent
from chaos.observe.checkpoints.torch.flatten import flatten
from chaos.observe.checkpoints.torch.inert_pickle import read_pickle
from chaos.observe.checkpoints.torch.objects import ArrayRef, TensorRef, make_object, storage_of
from chaos.observe.checkpoints.torch.state_names import named_as_in_rank
from chaos.observe.checkpoints.torch.step_numbers import numbers_about
from chaos.observe.checkpoints.torch.storages import Contents, CrcMismatch, read_contents
from chaos.observe.checkpoints.zipped.archive import END_MARK, LOCAL_MARK, Member, first_name, read_members

_PICKLE, _DATA = "data.pkl", "data/"
MAX_PICKLE = 64 << 20

_LEGACY = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The number behind the protocol at the start of files from before PyTorch 1.6."""


class TorchSaveReader(CheckpointReader):
    """Reads files of ``torch.save`` from PyTorch 1.6 on."""

    name: ClassVar[str] = "torch-save"
    about: ClassVar[str] = "a file of torch.save"
    endings: ClassVar[tuple[str, ...]] = (".pt", ".pth", ".ckpt", ".bin")

    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether the first member of a zip archive is ``…/data.pkl``, or the old format begins here."""
        return (first_name(head) or b"").endswith(f"/{_PICKLE}".encode()) or head[2:].startswith(_LEGACY)

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read a whole file of ``torch.save``."""
        if not stream.peek(len(LOCAL_MARK)).startswith(LOCAL_MARK):
            raise CheckpointNotSupported(path, "is in the format of torch.save from before PyTorch 1.6", 0)
        try:
            entries, contents, crc = read_archive(stream, Span(0, size))
        except UnknownContent as error:
            raise CheckpointNotSupported(path, str(error)) from error
        except (ValueError, EOFError) as error:
            raise CheckpointError(path, str(error)) from error
        if not entries:
            raise CheckpointNotSupported(path, "holds neither tensors nor plain values")
        return Parsed(entries, contents.places, crc, numbers=numbers_about(entries))

    def is_whole(self, tail: bytes) -> bool:
        """Return whether the file ends as a zip archive does: its list of members is written last."""
        return END_MARK in tail


READER = TorchSaveReader()


def read_archive(stream: io.BufferedReader, place: Span) -> tuple[dict[str, Tensor | Plain], Contents, Crc]:
    """Read an archive that takes a part of a file; return its entries, their contents, and whether CRCs were compared.

    Raises ValueError and EOFError for a damaged archive, UnknownContent for content that is not read.
    """
    members = read_members(stream, place)
    crc = any(member.crc for member in members)
    root, pickle = _parts(members)
    for member in members:
        if member.name == f"{root}byteorder" and _whole(stream, member, crc=crc) != b"little":
            raise UnknownContent("was saved on a machine with another order of bytes")
    structure = read_pickle(_whole(stream, pickle, crc=crc), make_object, storage_of)
    leaves = named_as_in_rank(structure, flatten(structure))
    tensors = {name: leaf for name, leaf in leaves.items() if isinstance(leaf, TensorRef)}
    storages = {
        member.name.removeprefix(root + _DATA): member for member in members if member.name.startswith(root + _DATA)
    }
    contents = read_contents(stream, members, tensors, storages, crc=crc)
    entries: dict[str, Tensor | Plain] = {}
    for name, leaf in leaves.items():
        if isinstance(leaf, TensorRef):
            entries[name] = contents.tensors[name]
        else:
            entries[name] = _from_array(name, leaf) if isinstance(leaf, ArrayRef) else leaf
    return entries, contents, "verified" if crc else "absent"


def _parts(members: list[Member]) -> tuple[str, Member]:
    """Return the directory of all members, and ``data.pkl``. Raises ValueError and UnknownContent."""
    pickles = [member for member in members if member.name.endswith(f"/{_PICKLE}")]
    if not pickles:
        raise ValueError(f"the archive has no {_PICKLE}")
    pickle = min(pickles, key=lambda member: len(member.name))
    root = pickle.name.removesuffix(_PICKLE)
    names = {member.name for member in members}
    if f"{root}constants.pkl" in names or any(name.startswith(f"{root}code/") for name in names):
        raise UnknownContent("is a program of TorchScript")
    if f"{root}version" not in names:
        raise UnknownContent("is an archive without the version that torch.save writes")
    return root, pickle


def _whole(stream: io.BufferedReader, member: Member, *, crc: bool) -> bytes:
    """Return a small member's content, after its CRC has been compared."""
    if member.place.length > MAX_PICKLE:
        raise UnknownContent(f"{member.name!r} has {member.place.length} bytes, over the limit of {MAX_PICKLE}")
    stream.seek(member.place.at)
    content = stream.read(member.place.length)
    if len(content) < member.place.length:
        raise EOFError("the file got shorter while it was read")
    if crc and zlib.crc32(content) != member.crc:
        raise CrcMismatch(f"the stored CRC of {member.name!r} is not its content's: the content was changed")
    return content


def _from_array(name: str, array: ArrayRef) -> Tensor:
    content = TensorContent(name, array.dtype, array.shape)
    content.take(array.content)
    return content.tensor()
