"""``.metadata`` of ``torch.distributed.checkpoint``: which tensors and values a checkpoint holds, and where they lie.

A checkpoint is a directory. Each process writes its items into ``__RANK_N.distcp``; rank 0 writes ``.metadata`` last.
Source: PyTorch 2.13, torch/distributed/checkpoint/metadata.py and filesystem.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import UnknownContent
from chaos.observe.checkpoints.tensor import MAX_DIMS
from chaos.observe.checkpoints.torch.dtypes import DTYPES
from chaos.observe.checkpoints.torch.inert_pickle import Global, Inert, read_pickle
from chaos.observe.checkpoints.torch.objects import make_object

METADATA = ".metadata"
"""Name of the file; a directory without it is unfinished."""

PART = re.compile(r"__(?P<rank>\d{1,9})_\d{1,9}\.distcp")
"""Name of a file with items; the rank is the process that wrote them."""

MODULE = "torch.distributed.checkpoint.metadata"
_FILES = "torch.distributed.checkpoint.filesystem"
_MOST = 1 << 62


@dataclass(frozen=True)
class Item:
    """A stream of ``torch.save`` inside a file of the directory."""

    file: str
    place: Span

    @property
    def rank(self) -> int | None:
        """The process that wrote the file; None where its name does not say."""
        match = PART.fullmatch(self.file)
        return None if match is None else int(match["rank"])


@dataclass(frozen=True)
class Chunk:
    """A part of a tensor, from ``offsets`` on."""

    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    item: Item


@dataclass(frozen=True)
class StoredTensor:
    """A tensor: its type and shape, and its chunks in the order of their offsets."""

    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class DcpMetadata:
    """The content of the file: tensors and other values by their names, and the keys on the way to each of them."""

    tensors: dict[str, StoredTensor]
    values: dict[str, Item]
    paths: dict[str, tuple[object, ...]]

    def items(self) -> Iterator[Item]:
        """Yield every item."""
        yield from self.values.values()
        for tensor in self.tensors.values():
            yield from (chunk.item for chunk in tensor.chunks)


def read_metadata(content: bytes) -> DcpMetadata:
    """Read ``.metadata``. Raises ValueError where it contradicts itself, and UnknownContent."""
    root = read_pickle(content, make_object)
    fields = _fields(root, f"{MODULE}.Metadata")
    described, stored = fields.get("state_dict_metadata"), fields.get("storage_data")
    if not isinstance(described, dict) or not isinstance(stored, dict):
        raise ValueError("the metadata lacks its tables")
    items = _items(stored)
    tensors: dict[str, StoredTensor] = {}
    values: dict[str, Item] = {}
    for name, entry in described.items():
        if not isinstance(name, str) or not isinstance(entry, Inert):
            raise ValueError("the metadata describes a value without a name or kind")
        places = items.pop(name, {})
        if entry.path == f"{MODULE}.BytesStorageMetadata":
            if len(places) != 1:
                raise ValueError(f"{name!r} is stored {len(places)} times")
            values[name] = next(iter(places.values()))
        elif entry.path == f"{MODULE}.TensorStorageMetadata":
            tensors[name] = _tensor(name, entry, places)
        else:
            raise UnknownContent(f"{name[:100]!r} is a {entry.path[:100]}, which this reader does not know")
    if items:
        raise ValueError(f"the metadata says where {next(iter(items))[:100]!r} lies, and not what it is")
    return DcpMetadata(tensors, values, _paths(fields.get("planner_data")))


def _paths(planner_data: object) -> dict[str, tuple[object, ...]]:
    """Return the keys on the way to each value, as the default planner notes them; none of another planner."""
    entries = planner_data.items() if isinstance(planner_data, dict) else ()
    return {
        name: path
        for name, path in entries
        if isinstance(name, str) and isinstance(path, tuple) and all(isinstance(key, (str, int)) for key in path)
    }


_Places = dict["tuple[int, ...] | None", Item]


def _items(stored: Mapping[object, object]) -> dict[str, _Places]:
    """Return the items by name and offsets."""
    items: dict[str, _Places] = {}
    for index, info in stored.items():
        key = _fields(index, f"{MODULE}.MetadataIndex")
        place = _fields(info, f"{_FILES}._StorageInfo")
        name, offsets = key.get("fqn"), key.get("offset")
        if place.get("transform_descriptors"):
            raise UnknownContent(f"{str(name)[:100]!r} is compressed or otherwise transformed")
        file, at, length = place.get("relative_path"), place.get("offset"), place.get("length")
        if not isinstance(name, str) or not isinstance(file, str) or not _natural(at) or not _natural(length):
            raise ValueError("the metadata has an entry without a name or place")
        if "/" in file or "\0" in file or file in ("", ".", ".."):
            raise ValueError(f"the metadata names a file outside of the directory: {file[:100]!r}")
        where = None if offsets is None else _naturals(offsets)
        if where is None and offsets is not None:
            raise ValueError(f"a part of {name[:100]!r} has impossible offsets")
        if where in items.setdefault(name, {}):
            raise ValueError(f"the part of {name[:100]!r} at {where} is stored twice")
        items[name][where] = Item(file, Span(at, length))
    return items


def _tensor(name: str, entry: Inert, places: _Places) -> StoredTensor:
    fields = entry.state if isinstance(entry.state, dict) else {}
    properties, shape, chunks = fields.get("properties"), _naturals(fields.get("size")), fields.get("chunks")
    dtype = _dtype(properties)
    if dtype is None:
        raise UnknownContent(f"tensor {name[:100]!r} is of a type which this reader does not know")
    if shape is None or not isinstance(chunks, list) or len(shape) > MAX_DIMS:
        raise ValueError(f"tensor {name[:100]!r} has an impossible shape")
    stored = []
    for chunk in chunks:
        described = _fields(chunk, f"{MODULE}.ChunkStorageMetadata")
        offsets, sizes = _naturals(described.get("offsets")), _naturals(described.get("sizes"))
        if offsets is None or sizes is None or not len(offsets) == len(sizes) == len(shape):
            raise ValueError(f"tensor {name[:100]!r} has a part of an impossible shape")
        if any(at + size > dim for at, size, dim in zip(offsets, sizes, shape, strict=True)):
            raise ValueError(f"a part of tensor {name[:100]!r} reaches out of it")
        item = places.pop(offsets, None)
        if item is None:
            raise ValueError(f"the part of tensor {name[:100]!r} at {list(offsets)} is stored nowhere")
        stored.append(Chunk(offsets, sizes, item))
    if places:
        raise ValueError(f"tensor {name[:100]!r} has stored parts that nobody described")
    return StoredTensor(dtype, shape, tuple(sorted(stored, key=lambda chunk: chunk.offsets)))


def _dtype(properties: object) -> str | None:
    """Return the type: the first value of the state, or its field."""
    state = properties.state if isinstance(properties, Inert) else None
    kind = state[0] if isinstance(state, tuple) and state else state.get("dtype") if isinstance(state, dict) else None
    return DTYPES.get(kind.path) if isinstance(kind, Global) else None


def _fields(value: object, path: str) -> dict[Any, Any]:
    """Return the attributes of an object of a class. Raises ValueError for anything else."""
    if not isinstance(value, Inert) or value.path != path or not isinstance(value.state, dict):
        raise ValueError(f"the metadata has something else in place of a {path.rpartition('.')[2]}")
    return value.state


def _naturals(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, (tuple, list)) or not all(_natural(value) for value in values):
        return None
    return tuple(values)


def _natural(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST
