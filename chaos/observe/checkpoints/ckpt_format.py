"""Strict parser of MindSpore's ``.ckpt`` format.

The file is a sequence of records ``0x0A, length, Value``, optionally followed by ``crc_num`` and the CRC-32 of all
records as ten big-endian bytes. The fields of a record are read first, without the content; if they are sound, the
content follows block by block. So the memory needed does not grow with the tensors.

Facts from the file of MindSpore 2.10:

- A scalar has no ``dims``; older releases write ``[0]``, and the loader still takes ``[0]`` for a scalar.
- A text has type ``str``, ``dims`` ``[0]`` and UTF-32 content. Integers appended to the file are Int64 scalars, floats
  Float32, booleans Bool; nothing marks them as different from parameters.
- A tensor above 512 MiB is cut into records with the same tag, all with the full ``dims``.
- A tensor without elements is not written at all.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported, UnknownContent
from chaos.observe.checkpoints.ckpt_messages import ValueFields, read_value
from chaos.observe.checkpoints.ckpt_source import CkptSource
from chaos.observe.checkpoints.parsed import Crc, Parsed
from chaos.observe.checkpoints.tensor import MAX_DIMS, STORAGE, Tensor, TensorContent

RECORD = 0x0A  # field 1, length-delimited
MAX_RECORD = 1 << 30  # twice what MindSpore writes into one
MAX_TEXT = 64 << 20  # of all names, types and appended texts: what is kept of a file, but for the shapes
MAX_VALUES = 1 << 19  # each takes some 700 bytes; a header of safetensors holds 200,000 tensors
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


@dataclass
class _Partial:
    """A tensor with slices still to come. ``at`` is where its first record starts."""

    tensor_type: str
    dims: tuple[int, ...]
    content: TensorContent
    at: int


@dataclass
class _Contents:
    """Content of the records read so far. ``text`` counts the bytes of names and texts."""

    entries: dict[str, Tensor | str] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    partial: _Partial | None = None
    text: int = 0


def parse_ckpt(path: Path, stream: io.BufferedReader, size: int) -> Parsed:
    """Read a whole ``.ckpt``. ``stream`` stands at byte 0 of ``size`` bytes; ``path`` is for the errors.

    Raises CheckpointError. A file cut exactly between two records is a sound, shorter file: the missing values show
    only by comparing names, or if a CRC trailer was expected.
    """
    stored_crc = _stored_crc(stream, size)
    end = size if stored_crc is None else size - _TRAILER_SIZE
    source = CkptSource(path, stream, end, summed=stored_crc is not None)
    contents = _Contents()
    while source.at < end:
        start = source.at
        record_end = _next_record(source)
        try:
            _add(contents, source, read_value(source.peek, source.at, record_end), start)
        except UnknownContent as error:
            raise CheckpointNotSupported(path, str(error), start) from error
        except ValueError as error:
            raise CheckpointError(path, str(error), start) from error
        source.skip(record_end)
    if contents.partial is not None:
        content = contents.partial.content
        problem = f"tensor {content.name!r} has {content.filled} of its {content.size} bytes; slices are missing"
        raise CheckpointError(path, problem, contents.partial.at)
    if not contents.entries:
        raise CheckpointError(path, "the file holds no values")
    crc: Crc = "absent"
    if stored_crc is not None:
        if stored_crc != source.crc:
            problem = f"the stored CRC is {stored_crc}, the content's is {source.crc}: the content was changed"
            raise CheckpointError(path, problem, source.end)
        crc = "verified"
    return Parsed(contents.entries, contents.places, crc)


def _stored_crc(stream: io.BufferedReader, size: int) -> int | None:
    if size < _TRAILER_SIZE:
        return None
    stream.seek(size - _TRAILER_SIZE)
    trailer = stream.read(_TRAILER_SIZE)
    stream.seek(0)
    return int.from_bytes(trailer[len(_TRAILER_MARK) :], "big") if trailer.startswith(_TRAILER_MARK) else None


def _next_record(source: CkptSource) -> int:
    """Pass the head of a record. Return the offset where the record ends."""
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
    return source.at + length


def _add(contents: _Contents, source: CkptSource, value: ValueFields, at: int) -> None:
    """Add one record to the collected content; pass only the bytes up to the end of the record's content."""
    tag = _text(contents, source, value.tag, "tag")
    if not tag:
        raise ValueError("the record has no tag")
    if value.map_tensor is not None:
        raise UnknownContent(f"{tag!r} is a map parameter, which this reader does not know")
    if value.tensor_type is None or value.content is None:
        raise ValueError(f"{tag!r} has no tensor, no type or no content")
    if len(value.dims) > MAX_DIMS:
        raise ValueError(f"tensor {tag!r} has impossible dims, {len(value.dims)} of them")
    tensor_type, dims, place = _text(contents, source, value.tensor_type, "type"), value.dims, value.content
    partial = contents.partial
    if partial is not None:
        begun = partial.content
        if (tag, tensor_type, dims) != (begun.name, partial.tensor_type, partial.dims):
            raise ValueError(
                f"tensor {begun.name!r} has {begun.filled} of its {begun.size} bytes, but the next record is "
                f"{tag!r} {tensor_type} {list(dims)}"
            )
    elif tag in contents.entries:
        raise ValueError(f"{tag!r} is in the file twice")
    elif len(contents.entries) >= MAX_VALUES:
        raise UnknownContent(f"more than {MAX_VALUES} values, the limit for a file")
    elif tensor_type == "str":
        contents.entries[tag] = _string(contents, source, tag, dims, place)
        return
    if partial is None:
        dtype = _dtype(tag, tensor_type)
        content = TensorContent(tag, dtype, _shape(tag, dtype, dims, place.length))
        if content.size > source.end - at:
            problem = f"needs {content.size} bytes, more than are left"
            raise ValueError(f"tensor {tag!r} {tensor_type} {list(dims)} {problem}")
        partial = _Partial(tensor_type, dims, content, at)
    content = partial.content
    filled = content.filled + place.length
    if (not place.length and content.size) or filled > content.size:
        problem = f"{filled} bytes of content, but {tensor_type} {list(dims)} needs {content.size}"
        raise ValueError(f"tensor {tag!r} has {problem}")
    source.skip(place.at)
    for block in source.blocks(place.end):
        content.take(block)
    contents.partial = partial
    if filled == content.size:
        contents.entries[tag] = _tensor(tag, content)
        if place.length == filled:  # not the last of several slices
            contents.places[tag] = place
        contents.partial = None


def _text(contents: _Contents, source: CkptSource, place: Span | None, what: str) -> str:
    raw = b"" if place is None else _kept(contents, source, place)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the {what} of the record is not text: {raw[:40]!r}") from error


def _kept(contents: _Contents, source: CkptSource, place: Span) -> bytes:
    contents.text += place.length
    if contents.text > MAX_TEXT:
        raise UnknownContent(f"names and texts of more than {MAX_TEXT} bytes, the limit for all of a file")
    return source.peek(place.at, place.length)


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


def _tensor(tag: str, content: TensorContent) -> Tensor:
    try:
        return content.tensor()
    except ValueError as error:
        raise ValueError(f"tensor {tag!r} {error}") from error


def _string(contents: _Contents, source: CkptSource, tag: str, dims: tuple[int, ...], place: Span) -> str:
    if dims != (0,):
        raise ValueError(f"text {tag!r} has dims {list(dims[:MAX_DIMS])}, expected [0]")
    try:
        return _kept(contents, source, place).decode("utf-32-le").rstrip("\0")
    except UnicodeDecodeError as error:
        raise ValueError(f"text {tag!r} is not UTF-32") from error
