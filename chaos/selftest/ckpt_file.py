"""Changes MindSpore checkpoint files by hand. It shares no code with the reader, which is under test."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.selftest.defect import Mutate, NothingToMutate


@dataclass(frozen=True)
class Entry:
    """One tensor of a file, as it is stored there."""

    tag: str
    dims: tuple[int, ...]
    kind: str
    content: bytes


class CkptFile:
    """The content of a ``.ckpt`` without a CRC."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = [_entry(value) for _, value in _fields(path.read_bytes()) if isinstance(value, bytes)]

    def write(self) -> None:
        """Replace the file."""
        self.path.write_bytes(b"".join(_record(entry) for entry in self.entries))

    def content(self, tag: str) -> bytes:
        """Return the bytes of one tensor."""
        return self._only_entry(tag).content

    def set_content(self, tag: str, content: bytes) -> None:
        """Replace the bytes of one tensor by as many others."""
        old = self._only_entry(tag)
        if len(content) != len(old.content):
            raise ValueError(f"{tag} has {len(old.content)} bytes, not {len(content)}")
        self.entries[self.entries.index(old)] = replace(old, content=content)

    def set_number(self, tag: str, number: int) -> None:
        """Replace a whole number of 4 or 8 bytes."""
        self.set_content(tag, number.to_bytes(len(self.content(tag)), "little"))

    def number(self, tag: str) -> int:
        """Return a whole number."""
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

    def take(self, tags: Sequence[str], other: CkptFile) -> None:
        """Replace these tensors by those of another file."""
        for tag in tags:
            self.set_content(tag, other.content(tag))

    def remove(self, tag: str) -> None:
        """Leave one tensor out."""
        self.entries.remove(self._only_entry(tag))

    def moments(self) -> list[str]:
        """Return names of the optimizer's slots."""
        return [entry.tag for entry in self.entries if entry.tag.startswith("moments.")]

    def weights(self) -> list[str]:
        """Return names of the network's weights and biases."""
        return [entry.tag for entry in self.entries if entry.tag.startswith("layer")]

    def _only_entry(self, tag: str) -> Entry:
        entries = [entry for entry in self.entries if entry.tag == tag]
        if len(entries) != 1:
            raise NothingToMutate(f"{self.path.name} holds {len(entries)} tensors {tag}")
        return entries[0]


def stored(pattern: str, change: Callable[[CkptFile], object]) -> Mutate:
    """Return a mutation that changes the checkpoint files matching ``pattern``, below the job's checkpoints.

    It raises NothingToMutate if there is none, or if nothing changes.
    """

    def mutate(run_dir: Path) -> None:
        paths = sorted((run_dir / "job" / "checkpoints").glob(pattern))
        if not paths:
            raise NothingToMutate(f"no checkpoint {pattern}")
        for path in paths:
            before = path.read_bytes()
            file = CkptFile(path)
            change(file)
            file.write()
            if path.read_bytes() == before:
                raise NothingToMutate(f"{path.name} is as it was")

    return mutate


def _entry(value: bytes) -> Entry:
    """Return one record: its tag, and its tensor of dims, type and content."""
    dims: list[int] = []
    texts: dict[int, bytes] = {}
    tag = b""
    for number, part in _fields(value):
        if number == 1 and isinstance(part, bytes):
            tag = part
        elif number == 2 and isinstance(part, bytes):
            for inner, content in _fields(part):
                if isinstance(content, int):
                    dims.append(content)
                else:
                    texts[inner] = content
    return Entry(tag.decode(), tuple(dims), texts[2].decode(), texts[3])


def _record(entry: Entry) -> bytes:
    dims = b"".join(b"\x08" + _varint(dim % (1 << 64)) for dim in entry.dims)
    tensor = dims + _field(2, entry.kind.encode()) + _field(3, entry.content)
    return _field(1, _field(1, entry.tag.encode()) + _field(2, tensor))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    result = b""
    while number > 0x7F:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message: their numbers, and bytes for fields with a length, else whole numbers."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value
        else:
            yield key >> 3, value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
