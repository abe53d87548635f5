"""MindSpore's ``.ckpt`` format, as far as this job needs it: written and read here, because the job has no framework.

A file is a sequence of records, each a protobuf ``Value {tag = 1, tensor = 2 {dims = 1, tensor_type = 2, tensor_content
= 3}}`` behind the byte 0x0A and its length. Behind them may be ``crc_num`` and the CRC-32 of all of them, as ten
big-endian bytes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any, Callable

import numpy

_TYPES = {"float32": "Float32", "int32": "Int32", "int64": "Int64", "uint64": "UInt64"}
_DTYPES = {name: dtype for dtype, name in _TYPES.items()}
_RECORD, _TAG, _TENSOR = 0x0A, 0x0A, 0x12
_DIMS, _TYPE, _CONTENT = 0x08, 0x12, 0x1A
_CRC, _CRC_SIZE = b"crc_num", 10


def write_ckpt(
    path: str, values: dict[str, Any], create: Callable[[str], Any], wrote: Callable[[], None], *, crc: bool = False
) -> None:
    """Write arrays by name to the file that ``create`` makes, and call ``wrote`` after each; with ``crc`` a checksum.

    The file has its name only once it is complete. Raises OSError where writing fails; the part written until then is
    left, with the ending ``.tmp``.
    """
    unfinished = f"{os.path.splitext(path)[0]}.tmp"
    checksum = 0
    with create(unfinished) as file:
        for name, array in values.items():
            record = _record(name, numpy.asarray(array))
            checksum = zlib.crc32(record, checksum)
            _write(file, record)
            wrote()
        if crc:
            _write(file, _CRC + checksum.to_bytes(_CRC_SIZE, "big"))
    os.replace(unfinished, path)


def read_ckpt(path: str, opens: Callable[[str], Any], *, crc: bool = False) -> dict[str, Any]:
    """Return arrays by name, from the file that ``opens`` opens. With ``crc`` it must have a checksum.

    Raises ValueError for a file that is not from :func:`write_ckpt`, is incomplete, or contradicts its checksum.
    """
    with opens(path) as file:
        raw = _checked(file.read(), path, crc)
    arrays = {}
    for number, record in _fields(raw, path):
        if number != _RECORD:
            raise ValueError(f"{path}: not a checkpoint")
        parts = dict(_fields(record, path))
        try:
            tensor = list(_fields(parts[_TENSOR], path))
            named = dict(tensor)
            dtype = numpy.dtype(_DTYPES[named[_TYPE].decode()])
            shape = tuple(value for key, value in tensor if key == _DIMS)
            arrays[parts[_TAG].decode()] = numpy.frombuffer(named[_CONTENT], dtype).reshape(shape)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: a value is not one of a checkpoint: {error!r}") from error
    if not arrays:
        raise ValueError(f"{path}: holds nothing")
    return arrays


def _write(file: Any, content: bytes) -> None:
    left = memoryview(content)
    while left:  # a disk that gets full takes a part, and refuses the rest
        left = left[file.write(left) :]


def _checked(raw: bytes, path: str, required: bool) -> bytes:
    """Return the records without the checksum behind them. Raises ValueError when they contradict it."""
    records, trailer = raw[: -len(_CRC) - _CRC_SIZE], raw[-len(_CRC) - _CRC_SIZE :]
    if not trailer.startswith(_CRC):
        if required:
            raise ValueError(f"{path}: its checksum is not there")
        return raw
    if int.from_bytes(trailer[len(_CRC) :], "big") != zlib.crc32(records):
        raise ValueError(f"{path}: its checksum is not that of its content")
    return records


def _record(name: str, array: Any) -> bytes:
    tensor = b"".join(bytes([_DIMS]) + _number(dim) for dim in array.shape)
    tensor += _text(_TYPE, _TYPES[array.dtype.name].encode()) + _text(_CONTENT, array.tobytes())
    return _text(_RECORD, _text(_TAG, name.encode()) + _text(_TENSOR, tensor))


def _text(key: int, content: bytes) -> bytes:
    return bytes([key]) + _number(len(content)) + content


def _number(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def _fields(raw: bytes, path: str) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message: numbers, or bytes of exactly their length."""
    at = 0
    while at < len(raw):
        key, at = raw[at], at + 1
        value, at = _read_number(raw, at, path)
        if key & 7 == 2:
            if at + value > len(raw):
                raise ValueError(f"{path}: ends in the middle of a value")
            yield key, raw[at : at + value]
            at += value
        else:
            yield key, value


def _read_number(raw: bytes, at: int, path: str) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw):
        byte, at = raw[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError(f"{path}: ends in the middle of a number")
