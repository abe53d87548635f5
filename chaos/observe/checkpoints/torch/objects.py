"""The objects in ``data.pkl``: tensors as views of storages, arrays of numpy, plain containers.

Source: PyTorch 2.13, torch/_utils.py (``_rebuild_…``), torch/serialization.py (persistent identifiers), and numpy's
pickles of arrays and scalars.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard

from chaos.observe.checkpoints.checkpoint_error import UnknownContent
from chaos.observe.checkpoints.tensor import MAX_DIMS, STORAGE
from chaos.observe.checkpoints.torch.dtypes import DTYPES, STORAGES
from chaos.observe.checkpoints.torch.inert_pickle import Global, Inert

_MOST = 1 << 62
_REBUILT = ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
_PARAMETERS = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
_DICTIONARIES = ("collections.OrderedDict", "collections.defaultdict", "collections.Counter")
_LISTS = (
    "torch.Size",
    # Pickles up to protocol 2 have the names of Python 2.
    *(f"{module}.{name}" for module in ("builtins", "__builtin__") for name in ("list", "tuple", "set", "frozenset")),
)
_NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray")
_NUMPY_TYPES = {
    "b1": "bool",
    **{f"{kind}{size}": f"{word}{8 * size}" for kind, word in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
    **{f"f{size}": f"float{8 * size}" for size in (2, 4, 8)},
    **{f"c{size}": f"complex{8 * size}" for size in (8, 16)},
}


@dataclass(frozen=True, slots=True, eq=False)
class StorageRef:
    """A storage: the member ``data/KEY`` of the archive, and its size in elements of a type."""

    key: str
    dtype: str
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class TensorRef:
    """A tensor: a view of a storage. Offset and strides are in elements of the type."""

    storage: StorageRef
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def reach(self) -> int:
        """The number of elements from the first one that is used to the last one."""
        if not self.count:
            return 0
        return 1 + sum((dim - 1) * stride for dim, stride in zip(self.shape, self.strides, strict=True))

    @property
    def in_order(self) -> bool:
        """Whether the elements lie in the storage in their order, without gaps."""
        expected = 1
        for dim, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if dim != 1 and stride != expected:
                return not self.count
            expected *= dim
        return True


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRef:
    """An array of numpy, whose content is in ``data.pkl`` itself."""

    dtype: str
    shape: tuple[int, ...]
    content: bytes


def make_object(called: object, arguments: tuple[Any, ...]) -> object:
    """Return a tensor, a container or a number by the call that would make it; anything else stays inert.

    Raises ValueError for a tensor that contradicts itself, and UnknownContent for a kind of tensor that is not read.
    """
    path = called.path if isinstance(called, Global) else ""
    if path in _REBUILT:
        return _tensor(path, arguments)
    if path in _PARAMETERS and arguments:
        return arguments[0]
    if path in _DICTIONARIES:
        return _dictionary(arguments)
    if path in _LISTS and len(arguments) == 1 and isinstance(arguments[0], (list, tuple)):
        return list(arguments[0])
    if path == "_codecs.encode" and len(arguments) == 2 and isinstance(arguments[0], str):
        return arguments[0].encode("latin-1", "replace")  # how protocol 2 writes bytes
    if path == "torch._tensor._rebuild_from_type_v2" and len(arguments) == 4:
        made = make_object(arguments[0], arguments[2]) if isinstance(arguments[2], tuple) else None
        if isinstance(made, Inert):
            made.state = arguments[3]
        return made
    if any(path == f"{module}.scalar" for module in _NUMPY) and len(arguments) == 2:
        return _number(*arguments)
    return Inert(called, arguments)


def storage_of(identifier: object) -> StorageRef:
    """Return the storage of a persistent identifier. Raises ValueError and UnknownContent."""
    match identifier:
        case ("storage", Global() as kind, str() as key, str(), int() as count, *rest):
            if any(part is not None for part in rest):
                raise UnknownContent(f"storage {key!r} is a view of another storage")
        case _:
            raise ValueError("the identifier of a storage is broken")
    dtype = STORAGES.get(kind.path)
    if dtype is None:
        raise UnknownContent(f"storage {key[:100]!r} is a {kind.path[:100]}, which this reader does not know")
    if not 0 <= count < _MOST:
        raise ValueError(f"storage {key[:100]!r} has an impossible size, {count}")
    return StorageRef(key, dtype, count)


def _tensor(path: str, arguments: tuple[Any, ...]) -> TensorRef:
    if len(arguments) < 4 or not isinstance(arguments[0], StorageRef):
        raise ValueError("a tensor without a storage, offset, shape or strides")
    storage, offset = arguments[0], arguments[1]
    shape, strides = _naturals(arguments[2]), _naturals(arguments[3])
    dtype, marks = storage.dtype, arguments[6:7]
    if path.endswith("_v3"):
        named = arguments[6] if len(arguments) > 6 else None
        name = named.path if isinstance(named, Global) else ""
        if name not in DTYPES:
            raise UnknownContent(f"a tensor of the type {name[:100]}, which this reader does not know")
        dtype, marks = DTYPES[name], arguments[7:8]
    if marks and marks[0]:
        raise UnknownContent("a tensor that is conjugated or negated when it is read")
    if not _natural(offset) or shape is None or strides is None or len(shape) != len(strides):
        raise ValueError("a tensor with an impossible offset, shape or strides")
    if len(shape) > MAX_DIMS:
        raise UnknownContent(f"a tensor of {len(shape)} dimensions")
    tensor = TensorRef(storage, dtype, offset, shape, strides)
    width, available = STORAGE[dtype].itemsize, storage.count * STORAGE[storage.dtype].itemsize
    if (offset + tensor.reach) * width > available and tensor.count:
        raise ValueError(f"a tensor of shape {list(shape)} reaches out of its storage {storage.key[:100]!r}")
    return tensor


def _dictionary(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """Return a dictionary; its first argument may be a list of pairs, as Python before 3.5 writes an ordered one."""
    pairs = arguments[0] if len(arguments) == 1 else ()
    if not isinstance(pairs, list):
        return {}
    items = {}
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise UnknownContent("an ordered dictionary whose keys are no texts")
        items[pair[0]] = pair[1]
    return items


def array_of(made: Inert) -> ArrayRef | None:
    """Return an array of numpy by its inert description; None for any other object, or an array of objects."""
    if made.path not in {f"{module}._reconstruct" for module in _NUMPY}:
        return None
    match made.state:
        case (int(), shape, Inert() as described, (bool() | int()) as by_column, (bytes() | bytearray()) as content):
            dtype, dims = _numpy_type(described), _naturals(shape)
            if dtype is None or dims is None or (by_column and len(dims) > 1) or len(dims) > MAX_DIMS:
                return None
            if len(content) != prod(dims) * STORAGE[dtype].itemsize:
                raise ValueError(f"an array of shape {list(dims)} with {len(content)} bytes")
            return ArrayRef(dtype, dims, bytes(content))
    return None


def _number(described: object, content: object) -> object:
    """Return a scalar of numpy as a plain value; None where it is none."""
    dtype = _numpy_type(described) if isinstance(described, Inert) else None
    if dtype is None or not isinstance(content, bytes) or len(content) != STORAGE[dtype].itemsize:
        return None
    import numpy as np

    value = np.frombuffer(content, STORAGE[dtype])[0].item()
    return value if isinstance(value, (bool, int, float)) else None


def _numpy_type(described: Inert) -> str | None:
    """Return the name of a plain little-endian type of numpy; None for any other."""
    if described.path != "numpy.dtype" or not described.arguments:
        return None
    order = described.state[1] if isinstance(described.state, tuple) and len(described.state) > 1 else "|"
    name = described.arguments[0]
    return _NUMPY_TYPES.get(name) if isinstance(name, str) and order in ("<", "|", "=") else None


def _naturals(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, (tuple, list)) or not all(_natural(value) for value in values):
        return None
    return tuple(values)


def _natural(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST
