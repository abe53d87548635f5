"""The contents of tensors in a ``torch.save`` archive: every member is read once, block by block, with its CRC."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from chaos.observe.checkpoints.blocks import BlockReader, Span
from chaos.observe.checkpoints.checkpoint_error import UnknownContent
from chaos.observe.checkpoints.tensor import STORAGE, Tensor, TensorContent
from chaos.observe.checkpoints.torch.objects import StorageRef, TensorRef
from chaos.observe.checkpoints.zipped.archive import Member

MAX_SCATTERED = 32 << 20
"""Bytes of a tensor whose elements do not lie in order, and of its part of the storage: it is read as a whole."""

MAX_TIMES = 4
"""How many times the archive's size may be read for tensors that share storages; some MiB are always read."""

_ALWAYS = 64 << 20


class CrcMismatch(ValueError):
    """The content of a member is not what was written."""


@dataclass(frozen=True)
class Contents:
    """The tensors of an archive by their names, and where their values lie in the file in order."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)


def read_contents(
    stream: io.BufferedReader,
    members: Iterable[Member],
    tensors: Mapping[str, TensorRef],
    member_of: Mapping[str, Member],
    *,
    crc: bool,
) -> Contents:
    """Return all tensors, after every member has been compared with its CRC if ``crc``.

    Args:
        stream: the open file.
        members: the members to read, in the order of the file.
        tensors: the views by their names.
        member_of: the member of each storage, by the storage's key.
        crc: whether CRCs are stored.

    Raises CrcMismatch, ValueError for a tensor that cannot be one, EOFError, and UnknownContent over the limits.
    """
    views = _views(tensors, member_of)
    contents = Contents()
    source = BlockReader(stream)
    for member in members:
        in_order = [view for view in views.get(member.name, ()) if view.tensor.in_order]
        _read_member(source, member, in_order, crc=crc)
        for view in in_order:
            contents.tensors[view.name] = _finished(view.content)
            contents.places[view.name] = Span(member.place.at + view.begin, view.content.size)
        for view in views.get(member.name, ()):
            if not view.tensor.in_order:
                contents.tensors[view.name] = _gathered(stream, member, view)
    return contents


@dataclass
class _View:
    """A tensor in a member, from its first used byte on."""

    name: str
    tensor: TensorRef
    content: TensorContent
    begin: int

    @property
    def end(self) -> int:
        return self.begin + self.content.size


def _views(tensors: Mapping[str, TensorRef], member_of: Mapping[str, Member]) -> dict[str, list[_View]]:
    """Return the tensors in each member, in the order of their places; limit how much is read for all of them."""
    views: dict[str, list[_View]] = {}
    size = 0
    for name, tensor in tensors.items():
        member = member_of.get(tensor.storage.key)
        if member is None:
            raise ValueError(f"tensor {name!r} is in storage {tensor.storage.key[:100]!r}, which is missing")
        _check_size(tensor.storage, member)
        content = TensorContent(name, tensor.dtype, tensor.shape)
        size += content.size
        views.setdefault(member.name, []).append(
            _View(name, tensor, content, tensor.offset * STORAGE[tensor.dtype].itemsize)
        )
    stored = sum(member.place.length for member in set(member_of.values()))
    if size > MAX_TIMES * stored + _ALWAYS:
        raise UnknownContent(f"the tensors have {size} bytes, and the storages that they share only {stored}")
    for listed in views.values():
        listed.sort(key=lambda view: view.begin)
    return views


def _check_size(storage: StorageRef, member: Member) -> None:
    needed = storage.count * STORAGE[storage.dtype].itemsize
    if needed != member.place.length:
        raise ValueError(f"storage {member.name!r} has {member.place.length} bytes, and its tensors need {needed}")


def _read_member(source: BlockReader, member: Member, views: list[_View], *, crc: bool) -> None:
    """Read a member once: for its CRC, and for the tensors that lie in it in order."""
    at, seen, waiting = 0, 0, iter(views)
    following = next(waiting, None)
    active: list[_View] = []
    for block in source.read(member.place):
        seen = zlib.crc32(block, seen) if crc else 0
        end = at + len(block)
        while following is not None and following.begin < end:
            active.append(following)
            following = next(waiting, None)
        for view in active:
            view.content.take(block[max(0, view.begin - at) : max(0, min(view.end, end) - at)])
        active = [view for view in active if view.end > end]
        at = end
    if crc and seen != member.crc:
        raise CrcMismatch(
            f"the stored CRC of {member.name!r} is {member.crc:08x}, the content's is {seen:08x}: "
            "the content was changed"
        )


def _finished(content: TensorContent) -> Tensor:
    try:
        return content.tensor()
    except ValueError as error:
        raise ValueError(f"tensor {content.name!r} {error}") from error


def _gathered(stream: io.BufferedReader, member: Member, view: _View) -> Tensor:
    """Return a tensor whose elements do not lie in order."""
    for piece in gather(stream, member.place.at, view.tensor, view.name):
        view.content.take(piece)
    return _finished(view.content)


def gather(stream: io.BufferedReader, at: int, tensor: TensorRef, name: str) -> Iterator[bytes]:
    """Yield the elements of a tensor in their order. ``at`` is where its storage begins in the file."""
    storage = STORAGE[tensor.dtype]
    if max(tensor.reach, tensor.count) * storage.itemsize > MAX_SCATTERED:
        raise UnknownContent(f"tensor {name!r} is not stored in order, and too large to be put in order")
    stream.seek(at + tensor.offset * storage.itemsize)
    stored = stream.read(tensor.reach * storage.itemsize)
    if len(stored) < tensor.reach * storage.itemsize:
        raise EOFError("the file got shorter while it was read")
    strides = [stride * storage.itemsize for stride in tensor.strides]
    values: np.ndarray[Any, Any] = as_strided(np.frombuffer(stored, storage), tensor.shape, strides, writeable=False)
    yield np.ascontiguousarray(values).tobytes()
