"""The members of a zip archive, each with a CRC-32: stored as ``torch.save`` writes them, or compressed by deflate.

Sources: PKWARE's APPNOTE 6.3.10; PyTorch 2.13, caffe2/serialize/inline_container.cc. Python's ``zipfile`` is not used:
it holds a directory of any size in memory, and lets members overlap.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import UnknownContent

LOCAL_MARK = b"PK\x03\x04"
LOCAL = Struct("<4s5H3I2H")
MAX_DIRECTORY = 64 << 20
MAX_MEMBERS = 1 << 19
_ENTRY_MARK, _ENTRY = b"PK\x01\x02", Struct("<4s6H3I5H2I")
END_MARK, _END = b"PK\x05\x06", Struct("<4s4H2IH")
END_SIZE = _END.size
"""Bytes of an archive without members or a comment."""
_END64_MARK, _END64 = b"PK\x06\x06", Struct("<4sQ2H2I4Q")
_LOCATOR_MARK, _LOCATOR = b"PK\x06\x07", Struct("<4sIQI")
_MOST_COMMENT = 0xFFFF
_NONE16, _NONE32 = 0xFFFF, 0xFFFFFFFF  # the value is in the 64-bit record or field
_FIELD64, _FIELD_HEAD = 1, Struct("<2H")
_ENCRYPTED, _STORED, _DEFLATED = 1, 0, 8


@dataclass(frozen=True)
class Member:
    """A member of the archive: its stored CRC, and the place of its content in the file.

    ``size`` is the number of bytes that the content has, when it is no longer compressed.
    """

    name: str
    crc: int
    place: Span
    size: int
    deflated: bool = False


class _Directory(NamedTuple):
    """The central directory: its place in the file, and the members that it has to list."""

    place: Span
    members: int


def first_name(head: bytes) -> bytes | None:
    """Return the name of the first member of a file that starts with ``head``, as far as it is there.

    None where the file is no zip archive, or an empty archive.
    """
    if len(head) < LOCAL.size or not head.startswith(LOCAL_MARK):
        return None
    return head[LOCAL.size : LOCAL.size + int(LOCAL.unpack_from(head)[9])]


def read_members(stream: io.BufferedReader, archive: Span, *, deflated: bool = False) -> list[Member]:
    """Return the members of an archive that takes a part of a file, in the order of their contents.

    ``deflated``: members may be compressed by deflate.

    Raises ValueError where the archive is cut off or contradicts itself, and UnknownContent where it is of a kind that
    is not read.
    """
    directory = _find_directory(stream, archive)
    methods = (_STORED, _DEFLATED) if deflated else (_STORED,)
    members = [_locate(stream, archive, directory, entry) for entry in _entries(stream, directory, methods)]
    members.sort(key=lambda member: member.place.at)
    end, names = archive.at, set()
    for member in members:
        if member.place.at < end:
            raise ValueError(f"member {member.name!r} overlaps the one before it")
        if member.name in names:
            raise ValueError(f"member {member.name!r} is there twice")
        names.add(member.name)
        end = member.place.end
    if end > directory.place.at:
        raise ValueError("a member overlaps the list of all members")
    return members


def _find_directory(stream: io.BufferedReader, archive: Span) -> _Directory:
    tail = min(archive.length, _END.size + _MOST_COMMENT)
    stream.seek(archive.end - tail)
    content = stream.read(tail)
    at = content.rfind(END_MARK)
    if at < 0 or len(content) - at < _END.size:
        raise ValueError("the zip archive has no end: cut off, or its last part was never written")
    _, disk, first_disk, _, members, length, begin, comment = _END.unpack_from(content, at)
    if at + _END.size + comment != len(content):
        raise ValueError(f"{len(content) - at - _END.size - comment} bytes follow the end of the zip archive")
    if disk not in (0, _NONE16) or first_disk not in (0, _NONE16):
        raise UnknownContent("a zip archive of several parts")
    end = archive.end - tail + at
    if _NONE32 in (length, begin) or members == _NONE16:
        members, length, begin, end = _end64(stream, archive, end)
    if archive.at + begin + length > end:
        raise ValueError("the list of the zip archive's members does not fit into it")
    if length > MAX_DIRECTORY or members > MAX_MEMBERS:
        raise UnknownContent(f"{members} members, listed in {length} bytes: over the limit of this reader")
    return _Directory(Span(archive.at + begin, length), members)


def _end64(stream: io.BufferedReader, archive: Span, end: int) -> tuple[int, int, int, int]:
    """Return members, length and begin of the directory, and where its record starts, of an archive over 4 GiB."""
    mark, _, at, _ = _unpack(stream, _LOCATOR, end - _LOCATOR.size)
    if mark != _LOCATOR_MARK:
        raise ValueError("the place of the zip archive's 64-bit end is missing")
    record = _unpack(stream, _END64, archive.at + at)
    if record[0] != _END64_MARK:
        raise ValueError("the zip archive's 64-bit end is not in its place")
    return record[7], record[8], record[9], archive.at + at


def _unpack(stream: io.BufferedReader, form: Struct, at: int) -> tuple[Any, ...]:
    if at < 0:
        raise ValueError("a part of the zip archive lies before its start")
    stream.seek(at)
    content = stream.read(form.size)
    if len(content) < form.size:
        raise ValueError("a part of the zip archive lies behind its end")
    return form.unpack(content)


class _Entry(NamedTuple):
    """A member, as the directory describes it; ``header`` is the offset of its header in the archive."""

    name: str
    crc: int
    packed: int
    size: int
    header: int
    deflated: bool


def _entries(stream: io.BufferedReader, directory: _Directory, methods: tuple[int, ...]) -> Iterator[_Entry]:
    stream.seek(directory.place.at)
    content = stream.read(directory.place.length)
    at = 0
    for _ in range(directory.members):
        if len(content) - at < _ENTRY.size or content[at : at + 4] != _ENTRY_MARK:
            raise ValueError("the list of the zip archive's members is broken")
        parts = _ENTRY.unpack_from(content, at)
        flags, method, crc, packed, size, name_length, extra, comment = *parts[3:5], *parts[7:13]
        header = parts[16]
        begin = at + _ENTRY.size
        at = begin + name_length + extra + comment
        if at > len(content):
            raise ValueError("the list of the zip archive's members is broken")
        name = content[begin : begin + name_length].decode("utf-8")
        wide = _wide_fields(content[begin + name_length : begin + name_length + extra])
        size, packed, header = (wide.pop(0) if value == _NONE32 and wide else value for value in (size, packed, header))
        if flags & _ENCRYPTED or method not in methods or (method == _STORED and packed != size):
            raise UnknownContent(f"member {name!r} is encrypted, or compressed in a way that is not read")
        yield _Entry(name, crc, packed, size, header, method == _DEFLATED)
    if at != len(content):
        raise ValueError("the list of the zip archive's members has more bytes than members")


def _wide_fields(extra: bytes) -> list[int]:
    """Return the 64-bit values of an entry, in the order in which the entry lacks them."""
    at = 0
    while len(extra) - at >= _FIELD_HEAD.size:
        kind, length = _FIELD_HEAD.unpack_from(extra, at)
        at += _FIELD_HEAD.size
        if kind == _FIELD64:
            field = extra[at : at + length]
            return [int.from_bytes(field[place : place + 8], "little") for place in range(0, len(field) // 8 * 8, 8)]
        at += length
    return []


def _locate(stream: io.BufferedReader, archive: Span, directory: _Directory, entry: _Entry) -> Member:
    parts = _unpack(stream, LOCAL, archive.at + entry.header)
    mark, name_length, extra = parts[0], parts[9], parts[10]
    name = stream.read(name_length)
    if mark != LOCAL_MARK or name != entry.name.encode():
        raise ValueError(f"member {entry.name!r} is not in its place")
    place = Span(archive.at + entry.header + LOCAL.size + name_length + extra, entry.packed)
    if place.end > directory.place.at:
        raise ValueError(f"member {entry.name!r} reaches behind the last member")
    return Member(entry.name, entry.crc, place, entry.size, entry.deflated)
