"""The protobuf message of a MindSpore ``.ckpt`` file, read field by field.

Facts from ``mindspore/train/checkpoint_pb2.py`` (2.10): ``Checkpoint {repeated Value value = 1}``; ``Value {string
tag = 1; TensorProto tensor = 2; MapTensorProto maptensor = 3}``; ``TensorProto {repeated int64 dims = 1 (not packed);
string tensor_type = 2; bytes tensor_content = 3}``.

protobuf itself would need the whole message in memory, and half a gigabyte of it is content. So only the keys, lengths
and numbers are read here, and the places of the rest are returned. Fields are accepted in any order, as by protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from chaos.observe.checkpoints.blocks import Span

MAX_FIELDS = 64
"""Most fields of a value and its tensor, each dim counted. No writer makes more; each takes time and memory."""

Peek = Callable[[int, int], bytes]
"""Returns a number of bytes from an offset on."""

_NUMBER, _FIXED_8, _BYTES, _GROUP, _GROUP_END, _FIXED_4 = range(6)
_FIXED = {_FIXED_8: 8, _FIXED_4: 4}
_VALUE_FIELDS = {(1, _BYTES), (2, _BYTES), (3, _BYTES)}
_TENSOR_FIELDS = {(1, _NUMBER), (1, _BYTES), (2, _BYTES), (3, _BYTES)}
_MAX_LENGTH = (1 << 31) - 1
_ALL_BITS = (1 << 64) - 1
_LONGEST_NUMBER, _LONGEST_KEY = 10, 5
_MAX_NUMBER = (1 << 29) - 1


@dataclass(frozen=True)
class ValueFields:
    """Places of the texts and the content of one value, and its dims; None for each that the value does not have."""

    tag: Span | None
    map_tensor: Span | None
    dims: tuple[int, ...]
    tensor_type: Span | None
    content: Span | None


class _Broken(Exception):
    """The bytes are not protobuf."""


class _Field(NamedTuple):
    """``value`` is the number of a number field, and of any other field without a length."""

    number: int
    wire: int
    value: int
    span: Span


def read_value(peek: Peek, at: int, end: int) -> ValueFields:
    """Read the fields of the ``Value`` between two offsets.

    Raises ValueError, naming the mistake, unless the value is exactly as a writer of this message makes it: broken wire
    format, a field that the message does not have, a duplicate field, a number in a longer form than needed.
    """
    fields = _fields(peek, at, end)
    tensors = [field.span for field in fields if (field.number, field.wire) == (2, _BYTES)]
    inner: list[_Field] = []
    for span in tensors:
        _at_most(len(fields) + len(inner))
        inner += _fields(peek, span.at, span.end)
    _at_most(len(fields) + len(inner))
    try:
        if not all(0 < field.number <= _MAX_NUMBER for field in (*fields, *inner)):
            raise _Broken
        dims, dims_size = _dims(peek, inner)
    except _Broken as error:
        raise ValueError("the record is not a checkpoint value; the protobuf data is broken") from error
    if not (_VALUE_FIELDS.issuperset(_kinds(fields)) and _TENSOR_FIELDS.issuperset(_kinds(inner))):
        raise ValueError("the record holds a field that a checkpoint value does not have")
    # Of a field that is there twice protobuf takes the last, of two tensors it makes one. The size tells on them.
    tag, map_tensor = _last(fields, 1), _last(fields, 3)
    tensor_type, content = _last(inner, 2), _last(inner, 3)
    size = _size(tag) + _size(map_tensor)
    if tensors:
        size += _size(Span(0, dims_size + _size(tensor_type) + _size(content)))
    if size != end - at:
        raise ValueError(f"the record has {end - at} bytes, but its fields take {size}")
    return ValueFields(tag, map_tensor, dims, tensor_type, content)


def _kinds(fields: list[_Field]) -> Iterator[tuple[int, int]]:
    return ((field.number, field.wire) for field in fields)


def _at_most(counted: int) -> None:
    if counted > MAX_FIELDS:
        raise ValueError(f"the record has more than {MAX_FIELDS} fields, which no checkpoint value has")


def _fields(peek: Peek, at: int, end: int) -> list[_Field]:
    """Return the fields of one message, few beyond the limit. A field without a number is broken, and may be last."""
    fields: list[_Field] = []
    while at < end and len(fields) <= MAX_FIELDS:
        try:
            field = _field(peek, at, end)
        except _Broken:
            field = _Field(0, 0, 0, Span(end, 0))
        fields.append(field)
        at = field.span.end
    return fields


def _field(peek: Peek, at: int, end: int) -> _Field:
    key, at = _varint(peek, at, end, _LONGEST_KEY)
    number, wire = key >> 3, key & 7
    value, length = 0, 0
    if wire == _NUMBER:
        value, at = _varint(peek, at, end, _LONGEST_NUMBER)
    elif wire == _BYTES:
        length, at = _varint(peek, at, end, _LONGEST_KEY)
        if length > _MAX_LENGTH:
            raise _Broken
    elif wire in _FIXED:
        length = _FIXED[wire]
    elif wire == _GROUP:
        length = _after_group(peek, at, end, number) - at
    else:
        raise _Broken
    if length > end - at:
        raise _Broken
    return _Field(number, wire, value, Span(at, length))


def _after_group(peek: Peek, at: int, end: int, number: int) -> int:
    """Return the offset behind a group.

    No value has a group. So a group with many fields, which would take time, is not followed.
    """
    opened = [number]
    for _ in range(MAX_FIELDS):
        key, after = _varint(peek, at, end, _LONGEST_KEY)
        if key & 7 == _GROUP:
            opened.append(key >> 3)
            at = after
        elif key & 7 == _GROUP_END:
            if key >> 3 != opened.pop():
                raise _Broken
            at = after
        else:
            at = _field(peek, at, end).span.end
        if not opened:
            return at
    raise _Broken


def _varint(peek: Peek, at: int, end: int, longest: int) -> tuple[int, int]:
    """Return the number at an offset and the offset behind it. protobuf drops the bits of the longest form above 64."""
    raw = peek(at, min(longest, end - at))
    if raw and raw[0] < 0x80:
        return raw[0], at + 1
    value = 0
    for index, byte in enumerate(raw):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & _ALL_BITS, at + index + 1
    raise _Broken


def _dims(peek: Peek, fields: list[_Field]) -> tuple[tuple[int, ...], int]:
    """Return the dims, and how many bytes a writer needs for them. protobuf accepts dims packed into one field, too."""
    values: list[int] = []
    for field in fields:
        if (field.number, field.wire) == (1, _NUMBER):
            values.append(field.value)
        elif (field.number, field.wire) == (1, _BYTES):
            at = field.span.at
            while at < field.span.end:
                value, at = _varint(peek, at, field.span.end, _LONGEST_NUMBER)
                values.append(value)
                _at_most(len(values))
    size = sum(1 + _varint_size(value) for value in values)
    return tuple(value - (1 << 64) if value >> 63 else value for value in values), size


def _last(fields: list[_Field], number: int) -> Span | None:
    return next((field.span for field in reversed(fields) if (field.number, field.wire) == (number, _BYTES)), None)


def _size(span: Span | None) -> int:
    """Return how many bytes a writer needs for a field of this content."""
    return 0 if span is None else 1 + _varint_size(span.length) + span.length


def _varint_size(value: int) -> int:
    return 1 if value < 0x80 else -(-value.bit_length() // 7)
