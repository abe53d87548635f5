"""Reader of the files of ``numpy.savez`` and ``savez_compressed``: a zip archive with one ``.npy`` for each array.

``numpy.load`` compares the CRC of an array that it reads to the end. Here the CRC of every member is compared. Arrays
of Python objects are pickles: a file with one is not read.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np

from chaos.observe.checkpoints.blocks import BLOCK, BlockReader, Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported, UnknownContent
from chaos.observe.checkpoints.checkpoint_reader import CheckpointReader
from chaos.observe.checkpoints.parsed import Parsed, Plain
from chaos.observe.checkpoints.tensor import STORAGE, Tensor, TensorContent
from chaos.observe.checkpoints.torch.step_numbers import numbers_of_script
from chaos.observe.checkpoints.zipped.archive import END_MARK, END_SIZE, LOCAL, Member, first_name, read_members
from chaos.observe.checkpoints.zipped.npy_header import MARK, NpyHeader, read_header

_ENDING = ".npy"
MAX_IN_COLUMNS = 32 << 20
"""Bytes of an array that lies in the file by columns, which is put in order as a whole."""

MAX_TEXT = 64 << 10
MAX_INFLATED = 16 << 30
MAX_TIMES = 64
"""How many times the size of the file its arrays may have, where they are compressed; some MiB are always read."""

_ALWAYS = 256 << 20


class NpzReader(CheckpointReader):
    """Reads files of ``numpy.savez``, and says of a file of ``numpy.save`` that it is one."""

    name: ClassVar[str] = "npz"
    about: ClassVar[str] = "a file of numpy.savez"
    endings: ClassVar[tuple[str, ...]] = (".npz",)

    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether the first member of a zip archive is an array, or the archive is empty.

        A name that goes on behind ``head`` is numpy's, too: names of arrays may have any length.
        """
        if head.startswith((END_MARK, MARK)):
            return True
        name = first_name(head)
        return name is not None and (name.endswith(_ENDING.encode()) or int(LOCAL.unpack_from(head)[9]) > len(name))

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read a whole file of ``numpy.savez``."""
        if stream.peek(len(MARK)).startswith(MARK):
            raise CheckpointNotSupported(path, "is a file of numpy.save: an array without a name or a checksum", 0)
        try:
            members = read_members(stream, Span(0, size), deflated=True)
            if not members and size > END_SIZE:
                raise ValueError("the zip archive lists none of its members")
            _check_names(members)
            _check_size(members, size)
            entries, places = _read_all(stream, members)
        except UnknownContent as error:
            raise CheckpointNotSupported(path, str(error)) from error
        except (ValueError, EOFError) as error:
            raise CheckpointError(path, str(error)) from error
        if not entries:
            raise CheckpointNotSupported(path, "holds no arrays")
        return Parsed(entries, places, "verified", numbers=numbers_of_script(entries))

    def is_whole(self, tail: bytes) -> bool:
        """Return whether the file ends as a zip archive does: its list of members is written last."""
        return END_MARK in tail

    def names(self, name: str) -> bool:
        """Return whether the ending is the format's own."""
        return name.endswith(".npz")


READER = NpzReader()


def _check_names(members: Iterable[Member]) -> None:
    for member in members:
        if not member.name.endswith(_ENDING):
            raise UnknownContent(f"is a zip archive with {member.name[:100]!r}, which numpy.savez does not write")


def _check_size(members: Iterable[Member], size: int) -> None:
    inflated = sum(member.size for member in members if member.deflated)
    if inflated > min(MAX_INFLATED, MAX_TIMES * size + _ALWAYS):
        raise UnknownContent(f"the compressed arrays of a file of {size} bytes have {inflated} bytes, over the limit")


def _read_all(
    stream: io.BufferedReader, members: Iterable[Member]
) -> tuple[dict[str, Tensor | Plain], dict[str, Span]]:
    """Return the arrays by their names, and where the values of each lie in the file in order."""
    source = BlockReader(stream)
    entries: dict[str, Tensor | Plain] = {}
    places: dict[str, Span] = {}
    for member in members:
        name = member.name.removesuffix(_ENDING)
        blocks = _compared(_inflated(source, member) if member.deflated else source.read(member.place), member)
        try:
            header, entries[name] = _read_array(member, blocks)
        except (ValueError, UnknownContent):
            for _ in blocks:  # first the CRC: damage explains content that is not known
                pass
            raise
        if not member.deflated and not header.columns and isinstance(entries[name], Tensor):
            places[name] = Span(member.place.at + header.length, member.place.length - header.length)
    return entries, places


def _inflated(source: BlockReader, member: Member) -> Iterator[bytes]:
    """Yield the content of a compressed member, in pieces of at most a block."""
    inflater, count = zlib.decompressobj(-zlib.MAX_WBITS), 0
    try:
        for block in source.read(member.place):
            left: bytes | memoryview = block
            while True:
                piece = inflater.decompress(left, BLOCK)
                left = inflater.unconsumed_tail
                count += len(piece)
                if count > member.size or inflater.unused_data:
                    raise ValueError(f"member {member.name!r} has more bytes than the {member.size} that are listed")
                yield piece
                if not left and len(piece) < BLOCK:
                    break
    except zlib.error as error:
        raise ValueError(f"member {member.name!r} cannot be decompressed: {error}") from error
    if not inflater.eof or count != member.size:
        raise ValueError(f"member {member.name!r} has {count} of its {member.size} bytes")


def _compared(blocks: Iterable[bytes | memoryview], member: Member) -> Iterator[bytes | memoryview]:
    """Yield the content of a member. Raises ValueError at its end where the CRC is another."""
    crc = 0
    for block in blocks:
        crc = zlib.crc32(block, crc)
        yield block
    if crc != member.crc:
        raise ValueError(
            f"the stored CRC of {member.name!r} is {member.crc:08x}, the content's is {crc:08x}: "
            "the content was changed"
        )


def _read_array(member: Member, blocks: Iterator[bytes | memoryview]) -> tuple[NpyHeader, Tensor | Plain]:
    """Return the array that the content of a member is, or the text of an array that is a single text."""
    name, begun, header = member.name.removesuffix(_ENDING), b"", None
    while header is None:
        block = next(blocks, None)
        if block is None:
            raise ValueError(f"array {name!r} ends within its header")
        begun += bytes(block)
        header = _header(name, begun)
    rest = chain((begun[header.length :],), blocks)
    del begun, block
    if header.kind == "U" and header.shape == ():
        _check_length(name, 4 * header.size, MAX_TEXT, member, header)
        return header, b"".join(map(bytes, rest)).decode("utf-32-le", "replace").rstrip("\0")
    if header.dtype not in STORAGE:
        raise UnknownContent(f"array {name!r} has the type {header.kind}{header.size}, which this reader does not know")
    content = TensorContent(name, header.dtype, header.shape)
    _check_length(name, content.size, MAX_IN_COLUMNS if header.columns else None, member, header)
    for piece in _by_rows(header, rest) if header.columns else rest:
        content.take(piece)
    try:
        return header, content.tensor()
    except ValueError as error:
        raise ValueError(f"array {name!r} {error}") from error


def _header(name: str, begun: bytes) -> NpyHeader | None:
    try:
        return read_header(begun)
    except UnknownContent as error:
        raise UnknownContent(f"array {name!r} {error}") from error


def _check_length(name: str, needed: int, limit: int | None, member: Member, header: NpyHeader) -> None:
    """Compare the bytes of an array with those that its type and shape need, before any of them is kept."""
    if (length := member.size - header.length) != needed:
        raise ValueError(f"array {name!r} has {length} bytes, but its type and shape need {needed}")
    if limit is not None and needed > limit:
        raise UnknownContent(f"array {name!r} is a text or stored by columns, and has {needed} bytes: over {limit}")


def _by_rows(header: NpyHeader, pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Yield the values of an array whose first index changes fastest in the file, in the usual order."""
    whole = b"".join(map(bytes, pieces))
    yield np.frombuffer(whole, STORAGE[header.dtype]).reshape(header.shape, order="F").tobytes()
