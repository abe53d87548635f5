"""Strict parser of MindSpore's ``.ckpt`` format.

The file is a sequence of records ``0x0A, length, Value``, optionally followed by ``crc_num`` and the CRC-32 of all
records as ten big-endian bytes. The records are framed here and handed to protobuf one at a time, so that the memory
needed is the tensors plus a few times the largest record, and files above protobuf's own limit of 2 GiB can be read.

What the file of MindSpore 2.10 shows:

- A scalar has no ``dims``; older releases write ``[0]``, and the loader still takes ``[0]`` for a scalar.
- A text has type ``str``, ``dims`` ``[0]`` and UTF-32 content. Integers appended to the file are Int64 scalars, floats
  Float32, booleans Bool; nothing marks them as different from parameters.
- A tensor above 512 MiB is cut into records with the same tag, all with the full ``dims``.
- A tensor without elements is not written at all.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from chaos.observe.checkpoint_error import CheckpointError, CheckpointNotSupported, UnknownContent
from chaos.observe.ckpt_messages import parse_value
from chaos.observe.parsed import Crc, Parsed
from chaos.observe.tensor import MAX_DIMS, STORAGE, Tensor, byte_count, make_tensor

RECORD = 0x0A  # field 1, length-delimited
MAX_RECORD = 1 << 30  # twice what MindSpore writes into one
_DTYPES = {
    "Bool": "bool",
    "Int8": "int8",
    "UInt8": "uint8",
    "Int16": "int16",
    "UInt16": "uint16",
    "Int32": "int32",
    "UInt32": "uint32",
    "Int64": "int64",
    "UInt64": "uint64",
    "Float16": "float16",
    "BFloat16": "bfloat16",
    "Float32": "float32",
    "Float64": "float64",
}
_PACKED_TYPES = {"Int4"}  # known to MindSpore; two values share a byte
_TRAILER_MARK = b"crc_num"
_TRAILER_SIZE = len(_TRAILER_MARK) + 10
_MAX_VARINT = 10


@dataclass
class _Partial:
    """A tensor of which some slices are still to come. ``at`` is where its first record starts."""

    tag: str
    tensor_type: str
    dims: tuple[int, ...]
    raw: bytearray
    filled: int
    at: int


class _Source:
    """Bytes up to ``end``, with their CRC."""

    def __init__(self, path: Path, stream: BinaryIO, end: int) -> None:
        self.path, self.end = path, end
        self.at = 0
        self.crc = 0
        self._stream = stream

    def take(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise CheckpointError(self.path, "the file got shorter while it was read", self.at)
        self.crc = zlib.crc32(data, self.crc)
        self.at += count
        return data

    def varint(self) -> int:
        start, value = self.at, 0
        for index in range(_MAX_VARINT):
            if self.at >= self.end:
                raise CheckpointError(self.path, "the file ends inside the length of a record: truncated", start)
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if byte == 0 and index:
                    break
                return value
        raise CheckpointError(self.path, "the length of a record is not a protobuf number", start)


def parse_ckpt(path: Path, stream: BinaryIO, size: int) -> Parsed:
    """Read a whole ``.ckpt``. ``stream`` stands at byte 0 of ``size`` bytes; ``path`` is for the errors.

    Raises CheckpointError. A file that was cut exactly between two records is a sound, shorter file: that values are
    missing can only be seen by comparing names, or by its CRC trailer having been expected.
    """
    stored_crc = _stored_crc(stream, size)
    source = _Source(path, stream, size if stored_crc is None else size - _TRAILER_SIZE)
    entries: dict[str, Tensor | str] = {}
    partial: _Partial | None = None
    while source.at < source.end:
        start = source.at
        message = _next_record(source)
        try:
            partial = _add(entries, partial, message, start, source.end)
        except UnknownContent as error:
            raise CheckpointNotSupported(path, str(error), start) from error
        except ValueError as error:
            raise CheckpointError(path, str(error), start) from error
    if partial is not None:
        problem = f"tensor {partial.tag!r} has {partial.filled} of its {len(partial.raw)} bytes; slices are missing"
        raise CheckpointError(path, problem, partial.at)
    if not entries:
        raise CheckpointError(path, "the file holds no values")
    crc: Crc = "absent"
    if stored_crc is not None:
        if stored_crc != source.crc:
            problem = f"the stored CRC is {stored_crc}, the content's is {source.crc}: the content was changed"
            raise CheckpointError(path, problem, source.end)
        crc = "verified"
    return Parsed(entries, crc)


def _stored_crc(stream: BinaryIO, size: int) -> int | None:
    if size < _TRAILER_SIZE:
        return None
    stream.seek(size - _TRAILER_SIZE)
    trailer = stream.read(_TRAILER_SIZE)
    stream.seek(0)
    return int.from_bytes(trailer[len(_TRAILER_MARK) :], "big") if trailer.startswith(_TRAILER_MARK) else None


def _next_record(source: _Source) -> Any:
    start = source.at
    key = source.take(1)[0]
    if key != RECORD:
        raise CheckpointError(source.path, f"expected a record (byte 0x0a), found 0x{key:02x}: not MindSpore", start)
    length = source.varint()
    left = source.end - source.at
    if length > left:
        problem = f"the record says that it has {length} bytes, but {left} are left: truncated, or a broken length"
        raise CheckpointError(source.path, problem, start)
    if length > MAX_RECORD:
        raise CheckpointNotSupported(
            source.path, f"a record of {length} bytes is over the limit of {MAX_RECORD}", start
        )
    try:
        return parse_value(source.take(length))
    except ValueError as error:
        raise CheckpointError(source.path, str(error), start) from error


def _add(
    entries: dict[str, Tensor | str], partial: _Partial | None, message: Any, at: int, end: int
) -> _Partial | None:
    """Put one record to the entries. Returns the tensor that is still incomplete, if any."""
    tag = _text(message.tag, "tag")
    if not tag:
        raise ValueError("the record has no tag")
    if message.HasField("maptensor"):
        raise UnknownContent(f"{tag!r} is a map parameter, which this reader does not know")
    tensor = message.tensor
    if not (message.HasField("tensor") and tensor.HasField("tensor_type") and tensor.HasField("tensor_content")):
        raise ValueError(f"{tag!r} has no tensor, no type or no content")
    if len(tensor.dims) > MAX_DIMS:
        raise ValueError(f"tensor {tag!r} has impossible dims, {len(tensor.dims)} of them")
    tensor_type, dims, content = _text(tensor.tensor_type, "type"), tuple(tensor.dims), tensor.tensor_content
    if partial is not None:
        if (tag, tensor_type, dims) != (partial.tag, partial.tensor_type, partial.dims):
            raise ValueError(
                f"tensor {partial.tag!r} has {partial.filled} of its {len(partial.raw)} bytes, but the next record is "
                f"{tag!r} {tensor_type} {list(dims)}"
            )
    elif tag in entries:
        raise ValueError(f"{tag!r} is in the file twice")
    elif tensor_type == "str":
        entries[tag] = _string(tag, dims, content)
        return None
    dtype = _dtype(tag, tensor_type)
    shape = _shape(tag, dtype, dims, len(content))
    expected = byte_count(dtype, shape)
    if partial is None:
        if len(content) == expected:
            entries[tag] = _tensor(tag, dtype, shape, content)
            return None
        if expected > end - at:
            raise ValueError(f"tensor {tag!r} {tensor_type} {list(dims)} needs {expected} bytes, more than are left")
        partial = _Partial(tag, tensor_type, dims, bytearray(expected), 0, at)
    if not content or partial.filled + len(content) > expected:
        problem = f"{partial.filled + len(content)} bytes of content, but {tensor_type} {list(dims)} needs {expected}"
        raise ValueError(f"tensor {tag!r} has {problem}")
    partial.raw[partial.filled : partial.filled + len(content)] = content
    partial.filled += len(content)
    if partial.filled < expected:
        return partial
    entries[tag] = _tensor(tag, dtype, shape, partial.raw)
    return None


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the {what} of the record is not text: {raw[:40]!r}") from error


def _dtype(tag: str, tensor_type: str) -> str:
    if tensor_type in _PACKED_TYPES:
        raise UnknownContent(f"tensor {tag!r} has type {tensor_type}, which this reader does not know")
    if tensor_type not in _DTYPES:
        raise ValueError(f"tensor {tag!r} has the type {tensor_type[:40]!r}, which MindSpore does not have")
    return _DTYPES[tensor_type]


def _shape(tag: str, dtype: str, dims: tuple[int, ...], content: int) -> tuple[int, ...]:
    if any(dim < 0 for dim in dims) or len(dims) > MAX_DIMS:
        raise ValueError(f"tensor {tag!r} has impossible dims {list(dims[:MAX_DIMS])}")
    if dims == (0,) and content == STORAGE[dtype].itemsize:
        return ()
    return dims


def _tensor(tag: str, dtype: str, shape: tuple[int, ...], raw: bytes | bytearray) -> Tensor:
    try:
        return make_tensor(tag, dtype, shape, raw)
    except ValueError as error:
        raise ValueError(f"tensor {tag!r} {error}") from error


def _string(tag: str, dims: tuple[int, ...], content: bytes) -> str:
    if dims != (0,):
        raise ValueError(f"text {tag!r} has dims {list(dims[:MAX_DIMS])}, expected [0]")
    try:
        return content.decode("utf-32-le").rstrip("\0")
    except UnicodeDecodeError as error:
        raise ValueError(f"text {tag!r} is not UTF-32") from error
