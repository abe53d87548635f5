"""Strict parser of the ``.safetensors`` format, as MindSpore and MindFormers write it.

Eight bytes little-endian length, a JSON header ``{name: {dtype, shape, data_offsets: [begin, end]}, "__metadata__":
{text: text}}``, then the data without gaps. Source: the format's description in the safetensors project.

MindSpore (``crc_check=True``) stores ``crc_num`` in the metadata: CRC-32 over name and content of every tensor in the
order of the names. Its code takes ``bytes(array)`` for the content, which for an integer of shape ``()`` and value *n*
is *n* zero bytes and not the number (seen with 2.10); the reader has to do the same. ``remove_redundancy`` says in text
whether the file leaves out content that other ranks with the same state save.

The content is read in blocks, and a second time if a CRC is stored: its order is not that of the file.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos.base.strict_json import parse
from chaos.observe.checkpoints.blocks import BLOCK, BlockReader, Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported, UnknownContent
from chaos.observe.checkpoints.parsed import Crc, Parsed
from chaos.observe.checkpoints.tensor import MAX_DIMS, Tensor, TensorContent, byte_count

LENGTH_SIZE = 8
MAX_HEADER = 32 << 20  # 200,000 tensors; the library itself takes 100,000,000
_BYTES_PER_PART = 8  # an entry has an object, two lists and far more text than that; a header of "[[],[]," has not
_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}
_OTHER_TYPES = {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4", "C64"}
_MAX_ZEROS = 1 << 26
_IMPOSSIBLE_ZEROS = 1 << 42  # MindSpore would need that many bytes of memory
_MAX_INT = 1 << 62


def looks_like_safetensors(head: bytes, size: int) -> bool:
    """Return whether the first bytes of a file of ``size`` bytes can be a length and the start of a JSON object."""
    if len(head) <= LENGTH_SIZE or head[LENGTH_SIZE : LENGTH_SIZE + 1] != b"{":
        return False
    return int.from_bytes(head[:LENGTH_SIZE], "little") <= size - LENGTH_SIZE


def parse_safetensors(path: Path, stream: io.BufferedReader, size: int) -> Parsed:
    """Read a whole ``.safetensors``. ``stream`` stands at byte 0 of ``size`` bytes. Raises CheckpointError."""
    prefix = stream.read(LENGTH_SIZE)
    length = int.from_bytes(prefix, "little")
    if len(prefix) != LENGTH_SIZE or length > size - LENGTH_SIZE:
        raise CheckpointError(path, f"a header of {length} bytes does not fit into a file of {size}", 0)
    if length > MAX_HEADER:
        raise CheckpointNotSupported(path, f"a header of {length} bytes is over the limit of {MAX_HEADER}", 0)
    try:
        header = _header(stream.read(length))
        metadata = _metadata(header)
        source = BlockReader(stream)
        entries, places = _read_all(source, header, LENGTH_SIZE + length, size)
        if not entries:
            raise ValueError("the file holds no tensors")
        crc = _check_crc(metadata, entries, places, source)
        for name, kept in _shared(metadata, entries).items():
            entries[name], places[name] = replace(entries[kept], name=name), places[kept]
    except UnknownContent as error:
        raise CheckpointNotSupported(path, str(error)) from error
    except (ValueError, EOFError) as error:
        raise CheckpointError(path, str(error)) from error
    return Parsed(dict(entries), places, crc, partial=metadata.get("remove_redundancy") == "True")


def _header(raw: bytes) -> dict[str, Any]:
    if (raw.count(b"[") + raw.count(b"{")) * _BYTES_PER_PART > len(raw) + 64:
        raise ValueError("the header is not sound JSON: it is almost nothing but brackets")
    try:
        header = parse(raw.decode("utf-8"), pairs=_unique)
    except ValueError as error:
        raise ValueError(f"the header is not sound JSON: {str(error)[:200]}") from error
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is there twice")
    return result


def _metadata(header: dict[str, Any]) -> dict[str, str]:
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("the metadata is not a table of texts")
    return metadata


def _shared(metadata: dict[str, str], entries: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the names of tensors that are in the file under another name, each with that name.

    PyTorch's ``save_model`` writes weights that a model shares (tied weights) once, and notes the names that it leaves
    out in the metadata (seen with safetensors 0.8.0).
    """
    return {name: kept for name, kept in metadata.items() if kept in entries and name not in entries}


def _read_all(
    source: BlockReader, header: dict[str, Any], start: int, end: int
) -> tuple[dict[str, Tensor], dict[str, Span]]:
    """Return the tensors between two offsets of the file, and the places of their contents."""
    described = {name: _entry(name, entry) for name, entry in header.items()}
    at, size = 0, end - start
    tensors, places = {}, {}
    for name, (dtype, shape, first, last) in sorted(described.items(), key=lambda item: item[1][2:]):
        if first != at:
            raise ValueError(f"tensor {name!r} starts at data byte {first}, expected {at}: a gap or an overlap")
        if last > size:
            raise ValueError(f"tensor {name!r} ends at data byte {last}, but the data has {size}: truncated")
        places[name] = Span(start + first, last - first)
        content = TensorContent(name, dtype, shape)
        for block in source.read(places[name]):
            content.take(block)
        try:
            tensors[name] = content.tensor()
        except ValueError as error:
            raise ValueError(f"tensor {name!r} {error}") from error
        at = last
    if at != size:
        raise ValueError(f"{size - at} bytes after the last tensor belong to nothing")
    return tensors, places


def _entry(name: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"tensor {name!r} must have dtype, shape and data_offsets and nothing else")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if isinstance(kind, str) and kind in _OTHER_TYPES:
        raise UnknownContent(f"tensor {name!r} has type {kind}, which this reader does not know")
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise ValueError(f"tensor {name!r} has the type {str(kind)[:40]!r}, which the format does not have")
    if not _naturals(shape) or len(shape) > MAX_DIMS:
        raise ValueError(f"tensor {name!r} has an impossible shape")
    if not _naturals(offsets) or len(offsets) != 2:
        raise ValueError(f"tensor {name!r} has impossible offsets")
    expected = byte_count(_DTYPES[kind], shape)
    if offsets[1] - offsets[0] != expected:
        raise ValueError(f"tensor {name!r} has {offsets[1] - offsets[0]} bytes, but {kind} {shape} needs {expected}")
    return _DTYPES[kind], tuple(shape), offsets[0], offsets[1]


def _naturals(values: Any) -> bool:
    # bool is an int in Python, not in JSON.
    return isinstance(values, list) and all(type(value) is int and 0 <= value < _MAX_INT for value in values)


def _check_crc(
    metadata: dict[str, str], entries: dict[str, Tensor], places: dict[str, Span], source: BlockReader
) -> Crc:
    text = metadata.get("crc_num")
    if text is None:
        return "absent"
    crc = 0
    for name in sorted(entries):
        crc = zlib.crc32(name.encode("utf-8"), crc)
        tensor = entries[name]
        if tensor.shape == () and "int" in tensor.dtype and tensor.scalar is not None:
            crc = _crc_of_zeros(name, int(tensor.scalar), crc)
        else:
            for block in source.read(places[name]):
                crc = zlib.crc32(block, crc)
    if text != str(crc):
        raise ValueError(f"the stored CRC is {text[:20]!r}, the content's is {crc}: the content was changed")
    return "verified"


def _crc_of_zeros(name: str, count: int, crc: int) -> int:
    if not 0 <= count < _IMPOSSIBLE_ZEROS:
        raise ValueError(f"{name!r} is {count}, with which MindSpore cannot have computed the stored CRC")
    if count > _MAX_ZEROS:
        raise UnknownContent(f"the CRC over {name!r} = {count} takes {count} zero bytes, too many to compute")
    zeros = memoryview(bytes(min(count, BLOCK)))
    while count:
        crc = zlib.crc32(zeros[:count], crc)
        count -= min(count, BLOCK)
    return crc
