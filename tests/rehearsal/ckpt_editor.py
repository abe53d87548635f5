"""Changes MindSpore checkpoint files by hand, sharing no code with the reader that is under test."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.unit.observe.ckpt_writer import CkptWriter


@dataclass(frozen=True)
class Entry:
    """One tensor of a file, as it stands there."""

    tag: str
    dims: tuple[int, ...]
    kind: str
    content: bytes


class Ckpt:
    """The content of a ``.ckpt`` without a CRC."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = [_entry(value) for _, value in _fields(path.read_bytes()) if isinstance(value, bytes)]

    def write(self) -> None:
        """Replace the file."""
        writer = CkptWriter()
        self.path.write_bytes(b"".join(writer.record(one.tag, one.dims, one.kind, one.content) for one in self.entries))

    def content(self, tag: str) -> bytes:
        """The bytes of one tensor."""
        return self._one(tag).content

    def set_content(self, tag: str, content: bytes) -> None:
        """Replace the bytes of one tensor."""
        old = self._one(tag)
        assert len(content) == len(old.content)
        self.entries[self.entries.index(old)] = replace(old, content=content)

    def set_number(self, tag: str, number: int) -> None:
        """Replace a whole number of 4 or 8 bytes."""
        self.set_content(tag, number.to_bytes(len(self.content(tag)), "little"))

    def number(self, tag: str) -> int:
        """A whole number."""
        return int.from_bytes(self.content(tag), "little")

    def set_float(self, tag: str, index: int, number: float) -> None:
        """Replace one element of a Float32 tensor."""
        content = bytearray(self.content(tag))
        struct.pack_into("<f", content, 4 * index, number)
        self.set_content(tag, bytes(content))

    def flip_bit(self, tag: str, bit: int) -> None:
        """Change one bit of one tensor."""
        content = bytearray(self.content(tag))
        content[bit // 8] ^= 1 << bit % 8
        self.set_content(tag, bytes(content))

    def remove(self, tag: str) -> None:
        """Leave one tensor out."""
        self.entries.remove(self._one(tag))

    def moments(self) -> list[str]:
        """Names of the optimizer's slots."""
        return [one.tag for one in self.entries if one.tag.startswith("moments.")]

    def _one(self, tag: str) -> Entry:
        (found,) = (one for one in self.entries if one.tag == tag)
        return found


def _entry(value: bytes) -> Entry:
    """One record: its tag, and its tensor of dims, type and content."""
    dims: list[int] = []
    texts: dict[int, bytes] = {}
    for _, tensor in (field for field in _fields(value) if field[0] == 2):
        assert isinstance(tensor, bytes)
        for number, content in _fields(tensor):
            if isinstance(content, int):
                dims.append(content)
            else:
                texts[number] = content
    ((_, tag),) = (field for field in _fields(value) if field[0] == 1)
    assert isinstance(tag, bytes)
    return Entry(tag.decode(), tuple(dims), texts[2].decode(), texts[3])


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Fields of a message: their numbers, and bytes for those with a length, whole numbers for the others."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value
        else:
            yield key >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
