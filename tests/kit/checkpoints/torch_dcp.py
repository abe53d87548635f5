"""A writer of directories of ``torch.distributed.checkpoint`` without torch, that shares no code with the reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.kit.checkpoints.torch_save import Called, ClassOf, Storage, TorchSave, View

METADATA = "torch.distributed.checkpoint.metadata"
STORAGE_INFO = "torch.distributed.checkpoint.filesystem._StorageInfo"


def view_of(array: NDArray[np.float32]) -> View:
    """A tensor with the values of an array."""
    return View(Storage(np.ascontiguousarray(array).tobytes()), array.shape)


@dataclass
class DcpWriter:
    """Collects the items of each rank, then writes them, and the metadata last."""

    streams: dict[int, bytes] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)
    stored: dict[Any, Any] = field(default_factory=dict)
    save_id: str = "one"
    paths: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def value(self, name: str, value: Any, rank: int = 0) -> None:
        """A value that is no tensor."""
        self.described[name] = Called(f"{METADATA}.BytesStorageMetadata")
        self._item(name, None, rank, value)

    def tensor(self, name: str, array: NDArray[np.float32], parts: Sequence[tuple[int, Sequence[slice]]]) -> None:
        """A tensor of float32; each part is a rank with the slices of the array that it writes."""
        chunks = []
        for rank, place in parts:
            offsets = tuple(int(part.start or 0) for part in place)
            piece = array[tuple(place)]
            chunks.append(
                Called(f"{METADATA}.ChunkStorageMetadata", (), {"offsets": offsets, "sizes": tuple(piece.shape)})
            )
            self._item(name, offsets, rank, view_of(piece))
        properties = Called(f"{METADATA}.TensorProperties", (), (ClassOf("torch.float32"), None, False, None, False))
        state = {"properties": properties, "size": tuple(array.shape), "chunks": chunks}
        self.described[name] = Called(f"{METADATA}.TensorStorageMetadata", (), state)

    def _item(self, name: str, offsets: tuple[int, ...] | None, rank: int, value: Any) -> None:
        content = TorchSave().archive(value)
        stream = self.streams.setdefault(rank, b"")
        index = _Key(name, offsets)
        self.stored[index] = {"relative_path": f"__{rank}_0.distcp", "offset": len(stream), "length": len(content)}
        self.streams[rank] = stream + content

    def metadata(self) -> bytes:
        stored = {
            Called(f"{METADATA}.MetadataIndex", (), {"fqn": key.name, "offset": key.offsets, "index": 0}): Called(
                STORAGE_INFO, (), info
            )
            for key, info in self.stored.items()
        }
        fields = {"state_dict_metadata": self.described, "planner_data": self.paths, "storage_data": stored}
        fields["storage_meta"] = Called(f"{METADATA}.StorageMeta", (), {"save_id": self.save_id})
        return TorchSave().pickle(Called(f"{METADATA}.Metadata", (), fields))

    def write(self, directory: Path) -> Path:
        """Write the directory; returns its metadata."""
        directory.mkdir(parents=True, exist_ok=True)
        for rank, content in self.streams.items():
            (directory / f"__{rank}_0.distcp").write_bytes(content)
        (directory / ".metadata").write_bytes(self.metadata())
        return directory / ".metadata"


@dataclass(frozen=True)
class _Key:
    name: str
    offsets: tuple[int, ...] | None


def rows(ranks: int, size: int) -> list[tuple[int, Sequence[slice]]]:
    """The parts of a tensor that is cut by its rows, as FSDP cuts."""
    each = -(-size // ranks)
    return [(rank, (slice(begin, min(begin + each, size)),)) for rank in range(ranks) if (begin := rank * each) < size]


def job_directory(step: int, ranks: int = 2) -> DcpWriter:
    """The checkpoint of a small job whose state is cut between its ranks."""
    writer = DcpWriter(save_id=f"save {step}")
    weight = np.arange(12, dtype=np.float32).reshape(4, 3) + step
    writer.tensor("model.net.weight", weight, [(rank, (*place, slice(0, 3))) for rank, place in rows(ranks, 4)])
    writer.tensor("optim.state.net.weight.exp_avg", weight / 8, [(r, (*at, slice(0, 3))) for r, at in rows(ranks, 4)])
    writer.tensor("optim.state.net.weight.step", np.array(step, np.float32), [(ranks - 1, ())])
    writer.value("optim.param_groups.0.params", ["net.weight"])
    writer.value("optim.param_groups.0.lr", 0.1)
    writer.value("step", step, ranks - 1)
    return writer
