"""A writer of ``torch.save`` files that shares no code with the reader, and needs no torch."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIDTHS = {"FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8, "BoolStorage": 1}
PLACES = {"UntypedStorage": "torch.storage."}
VERSION = {"version": b"3\n", "byteorder": b"little"}


@dataclass(frozen=True)
class Storage:
    """The content of a storage, with the class that names its type."""

    content: bytes
    kind: str = "FloatStorage"


@dataclass(frozen=True)
class View:
    """A tensor: a view of a storage. Without strides the values lie in order."""

    storage: Storage
    shape: Sequence[int]
    strides: Sequence[int] | None = None
    offset: int = 0
    dtype: str | None = None
    """A type beside an untyped storage (``_rebuild_tensor_v3``)."""


@dataclass(frozen=True, eq=False)
class Called:
    """An object that unpickling would make by a call, and set the state of."""

    path: str
    arguments: tuple[Any, ...] = ()
    state: Any = None


def floats(*values: float, shape: Sequence[int] | None = None) -> View:
    """A tensor of float32 with a storage of its own."""
    return View(Storage(struct.pack(f"<{len(values)}f", *values)), [len(values)] if shape is None else shape)


def scalar(value: float) -> View:
    """A tensor without dimensions, as optimizers count their updates."""
    return floats(value, shape=[])


@dataclass
class TorchSave:
    """Writes files of ``torch.save``, sound or deliberately not. ``storages`` are those of the last file, in order."""

    storages: list[Storage] = field(default_factory=list)

    def pickle(self, value: Any) -> bytes:
        self.storages = []
        return b"\x80\x02" + self._value(value) + b"."

    def archive(self, value: Any, root: str = "archive", members: Mapping[str, bytes] | None = None) -> bytes:
        """The bytes of a file. ``members`` are added, or take the place of others."""
        parts = {"data.pkl": self.pickle(value), "byteorder": VERSION["byteorder"]}
        parts |= {f"data/{number}": storage.content for number, storage in enumerate(self.storages)}
        parts |= {"version": VERSION["version"], **(members or {})}
        return zipped({f"{root}/{name}": content for name, content in parts.items()})

    def write(self, path: Path, value: Any) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.archive(value, path.stem))
        return path

    def _value(self, value: Any) -> bytes:
        match value:
            case None:
                return b"N"
            case bool():
                return b"\x88" if value else b"\x89"
            case int():
                return b"\x8a" + bytes([len(raw := _integer(value))]) + raw
            case float():
                return b"G" + struct.pack(">d", value)
            case str():
                return b"X" + struct.pack("<I", len(raw := value.encode())) + raw
            case bytes():
                return b"B" + struct.pack("<I", len(value)) + value
            case View():
                return self._view(value)
            case Called():
                return self._called(value)
            case ClassOf():
                return self._global(value.path)
            case Mapping():
                items = b"".join(self._value(key) + self._value(child) for key, child in value.items())
                return b"}(" + items + b"u"
            case list():
                return b"](" + b"".join(map(self._value, value)) + b"e"
            case tuple():
                return b"(" + b"".join(map(self._value, value)) + b"t"
        raise TypeError(type(value))

    def _view(self, view: View) -> bytes:
        strides = view.strides
        if strides is None:
            strides = [_product(view.shape[place + 1 :]) for place in range(len(view.shape))]
        rest: tuple[Any, ...] = (False, Called("collections.OrderedDict"))
        name = "_rebuild_tensor_v2"
        if view.dtype is not None:
            name, rest = "_rebuild_tensor_v3", (*rest, ClassOf(f"torch.{view.dtype}"))
        arguments = (_Stored(view.storage), view.offset, tuple(view.shape), tuple(strides), *rest)
        return self._global(f"torch._utils.{name}") + self._arguments(arguments) + b"R"

    def _called(self, called: Called) -> bytes:
        made = self._global(called.path) + self._arguments(called.arguments) + b"R"
        return made if called.state is None else made + self._value(called.state) + b"b"

    def _arguments(self, arguments: tuple[Any, ...]) -> bytes:
        return b"(" + b"".join(map(self._argument, arguments)) + b"t"

    def _argument(self, argument: Any) -> bytes:
        if isinstance(argument, _Stored):
            return self._stored(argument.storage)
        return self._value(argument)

    def _stored(self, storage: Storage) -> bytes:
        number = next((place for place, known in enumerate(self.storages) if known is storage), len(self.storages))
        if number == len(self.storages):
            self.storages.append(storage)
        count = len(storage.content) // WIDTHS.get(storage.kind, 1)
        parts = [self._value("storage"), self._global(PLACES.get(storage.kind, "torch.") + storage.kind)]
        parts += [self._value(value) for value in (str(number), "cpu", count)]
        return b"(" + b"".join(parts) + b"tQ"

    @staticmethod
    def _global(path: str) -> bytes:
        module, _, name = path.rpartition(".")
        return f"c{module}\n{name}\n".encode()


@dataclass(frozen=True)
class ClassOf:
    """The name of a class or function itself."""

    path: str


@dataclass(frozen=True)
class _Stored:
    storage: Storage


def zipped(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """The bytes of a zip archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return target.getvalue()


def job_state(step: int) -> dict[str, Any]:
    """The state of a small job, as its script saves it."""
    return {
        "model": {"net.weight": floats(*(0.5 + step * 0.25 + number for number in range(6)), shape=[2, 3])},
        "optimizer": {
            "state": {0: {"step": scalar(float(step)), "exp_avg": floats(*(step * 0.1,) * 6, shape=[2, 3])}},
            "param_groups": [{"lr": 0.1, "params": [0]}],
        },
        "step": step,
    }


def _integer(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)


def _product(values: Sequence[int]) -> int:
    result = 1
    for value in values:
        result *= value
    return result
