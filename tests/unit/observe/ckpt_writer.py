"""A writer of checkpoint files that shares no code with the reader."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence


class CkptWriter:
    """Writes the bytes of a ``.ckpt``, sound or deliberately not."""

    @staticmethod
    def varint(number: int) -> bytes:
        result = b""
        while number > 0x7F:
            result += bytes([number & 0x7F | 0x80])
            number >>= 7
        return result + bytes([number])

    def field(self, number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2]) + self.varint(len(content)) + content

    def tensor(self, dims: Sequence[int], kind: str, content: bytes) -> bytes:
        packed = b"".join(b"\x08" + self.varint(dim % (1 << 64)) for dim in dims)
        return packed + self.field(2, kind.encode()) + self.field(3, content)

    def record(self, tag: str, dims: Sequence[int], kind: str, content: bytes) -> bytes:
        return self.field(1, self.field(1, tag.encode()) + self.field(2, self.tensor(dims, kind, content)))

    def floats(self, tag: str, *values: float) -> bytes:
        return self.record(tag, [len(values)], "Float32", struct.pack(f"<{len(values)}f", *values))

    def integer(self, tag: str, value: int) -> bytes:
        return self.record(tag, [], "Int64", struct.pack("<q", value))

    @staticmethod
    def with_crc(records: bytes) -> bytes:
        return records + b"crc_num" + zlib.crc32(records).to_bytes(10, "big")

    def sample(self) -> bytes:
        """A small sound file: three tensors, two appended numbers."""
        return (
            self.floats("fc.weight", 1.0, -2.0, 3.5, 0.25)
            + self.floats("moments.fc.weight", 0.0, 0.5, 0.5, 0.125)
            + self.record("flag", [2], "Bool", b"\x01\x00")
            + self.integer("epoch_num", 1)
            + self.integer("step_num", 5)
        )
