"""Reader of ``torch.distributed.checkpoint``: the directory is one checkpoint, known by its file ``.metadata``.

Each item in the files ``__RANK_N.distcp`` is a stream of ``torch.save``, so its CRCs are compared; PyTorch compares
none. Tensors that are cut into chunks are put together by their offsets. Files of an older save whose items have the
same sizes are sound in themselves: only the digests show them.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from chaos.base.plain_files import UnreadableFile, open_plain
from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.checkpoint_error import CheckpointError, CheckpointNotSupported, UnknownContent
from chaos.observe.checkpoints.checkpoint_reader import CheckpointReader
from chaos.observe.checkpoints.parsed import Crc, Parsed, Piece, Plain
from chaos.observe.checkpoints.tensor import Tensor, TensorContent
from chaos.observe.checkpoints.torch.dcp_chunks import check_tiles, whole_content
from chaos.observe.checkpoints.torch.dcp_metadata import METADATA, MODULE, PART, Chunk, DcpMetadata, Item, StoredTensor
from chaos.observe.checkpoints.torch.dcp_metadata import read_metadata as parse_metadata
from chaos.observe.checkpoints.torch.flatten import ALONE
from chaos.observe.checkpoints.torch.save_reader import read_archive
from chaos.observe.checkpoints.torch.state_names import names_by_paths
from chaos.observe.checkpoints.torch.step_numbers import numbers_about
from chaos.observe.checkpoints.zipped.archive import LOCAL_MARK

MAX_METADATA = 64 << 20
MAX_FILES = 1 << 12
MAX_BYTES = 16 << 30


class DcpReader(CheckpointReader):
    """Reads a directory of ``torch.distributed.checkpoint`` from its ``.metadata`` on."""

    name: ClassVar[str] = "torch-dcp"
    about: ClassVar[str] = "the metadata of torch.distributed.checkpoint"
    whole_directory: ClassVar[str | None] = METADATA
    endings: ClassVar[tuple[str, ...]] = (METADATA, ".distcp")

    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether a pickle begins with the class of the metadata."""
        return head[:1] == b"\x80" and MODULE.encode() in head[:64]

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read the metadata, then every item of every file."""
        if size > MAX_METADATA:
            raise CheckpointNotSupported(path, f"has {size} bytes, over the limit of {MAX_METADATA}")
        try:
            metadata = parse_metadata(stream.read())
        except UnknownContent as error:
            raise CheckpointNotSupported(path, str(error)) from error
        except ValueError as error:
            raise CheckpointError(path, str(error)) from error
        with _Files(path.parent) as files:
            files.check(metadata)
            return _Directory(metadata, files).parsed()

    def names(self, name: str) -> bool:
        """Return whether it is the name of the metadata."""
        return name == METADATA

    def files(self, path: Path) -> tuple[Path, ...]:
        """Return the metadata, and the files that lie beside it with items."""
        return (path, *sorted(path.parent.glob("__*.distcp")))

    def is_part(self, name: str, rank: int | None = None) -> bool:
        """Return whether it is the metadata, or a file with items; ranks have written the latter."""
        match = PART.fullmatch(name)
        if rank is None:
            return match is not None or name == METADATA
        return match is not None and int(match["rank"]) == rank

    def is_broken_off(self, names: Collection[str]) -> bool:
        """Return whether there are items and no metadata, which is written last; nor the digests in its place."""
        return not any(name.startswith(METADATA) for name in names) and any(map(PART.fullmatch, names))


READER = DcpReader()


class _Files:
    """The open files of a directory. Raises CheckpointError for one that is missing or cut off."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._open: dict[str, io.BufferedReader] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def path(self, name: str) -> Path:
        return self._directory / name

    def open(self, name: str) -> io.BufferedReader:
        if name not in self._open:
            try:
                self._open[name] = self._stack.enter_context(open_plain(self.path(name)))
            except UnreadableFile as error:
                raise CheckpointError(self.path(name), f"{METADATA} beside it names it: {error.strerror}") from error
        return self._open[name]

    def check(self, metadata: DcpMetadata) -> None:
        """Check that every byte of every file is an item's."""
        items: dict[str, list[Item]] = defaultdict(list)
        for item in metadata.items():
            items[item.file].append(item)
        if len(items) > MAX_FILES:
            raise CheckpointNotSupported(
                self.path(METADATA), f"is of {len(items)} files, over the limit of {MAX_FILES}"
            )
        total = 0
        for name, listed in items.items():
            size, end = self.open(name).seek(0, 2), 0
            total += size
            for item in sorted(listed, key=lambda item: item.place.at):
                if item.place.at != end:
                    raise CheckpointError(self.path(name), "its items have a gap between them, or overlap", end)
                end = item.place.end
            if end != size:
                problem = f"has {size} bytes, and by {METADATA} beside it {end}: cut off, or of another save"
                raise CheckpointError(self.path(name), problem)
        if total > MAX_BYTES:
            raise CheckpointNotSupported(self.path(METADATA), f"is of {total} bytes, over the limit of {MAX_BYTES}")


class _Directory:
    """Reads the items of a checkpoint."""

    def __init__(self, metadata: DcpMetadata, files: _Files) -> None:
        self._metadata = metadata
        self._files = files
        self._crcs: set[Crc] = set()
        self._pieces: list[Piece] = []

    def parsed(self) -> Parsed:
        """Return everything. Raises CheckpointError."""
        entries: dict[str, Tensor | Plain] = {}
        shards: dict[str, dict[int, str]] = {}
        for name, item in self._metadata.values.items():
            for key, value in self._read(name, item)[0].items():
                entries[name if key == ALONE else f"{name}.{key}"] = value
        for name, tensor in self._metadata.tensors.items():
            with self._reading(self._files.path(METADATA)):
                check_tiles(name, tensor)
            entries[name], parts = self._tensor(name, tensor)
            if len(tensor.chunks) > 1:
                shards[name] = parts
        if not entries:
            raise CheckpointNotSupported(self._files.path(METADATA), "names neither tensors nor values")
        new = names_by_paths(self._metadata.paths, entries)
        named = {
            new[name]: replace(entry, name=new[name]) if isinstance(entry, Tensor) else entry
            for name, entry in entries.items()
        }
        by_rank = {new[name]: parts for name, parts in shards.items()}
        crc: Crc = "verified" if self._crcs == {"verified"} else "absent"
        return Parsed(named, {}, crc, numbers=numbers_about(named), shards=by_rank, pieces=tuple(self._pieces))

    def _read(self, name: str, item: Item) -> tuple[dict[str, Tensor | Plain], dict[str, Span]]:
        """Return the values of an item, and where their contents lie in its file."""
        stream = self._files.open(item.file)
        with self._reading(self._files.path(item.file), item.place.at):
            stream.seek(item.place.at)
            head = stream.read(len(LOCAL_MARK))
            if not any(head):
                raise ValueError("an item starts with zeros: the content was never written, or was lost")
            if head != LOCAL_MARK:
                raise UnknownContent("an item that is no stream of torch.save, or its first bytes are damaged")
            entries, contents, crc = read_archive(stream, item.place)
        self._crcs.add(crc)
        for key, place in contents.places.items():
            dtype = contents.tensors[key].dtype
            self._pieces.append(
                Piece(name if key == ALONE else f"{name}.{key}", dtype, self._files.path(item.file), place)
            )
        return entries, contents.places

    def _tensor(self, name: str, tensor: StoredTensor) -> tuple[Tensor, dict[int, str]]:
        """Return the whole tensor, and the digest of each rank's part."""
        places: dict[Chunk, Span] = {}
        parts: dict[int, str] = {}
        twice: set[int] = set()
        content = TensorContent(name, tensor.dtype, tensor.shape)
        for chunk in tensor.chunks:
            entries, where = self._read(name, chunk.item)
            stored = entries.get(ALONE)
            if not isinstance(stored, Tensor) or (stored.dtype, stored.shape) != (tensor.dtype, chunk.shape):
                raise CheckpointError(
                    self._files.path(chunk.item.file),
                    f"has something else than the part of tensor {name!r} at {list(chunk.offsets)}",
                    chunk.item.place.at,
                )
            if chunk.shape == tensor.shape:
                return Tensor(name, stored.dtype, stored.shape, stored.digest, stored.finite, stored.scalar), {}
            if ALONE not in where:
                raise CheckpointNotSupported(
                    self._files.path(chunk.item.file), f"a part of tensor {name!r} is not stored in order"
                )
            places[chunk] = where[ALONE]
            if (rank := chunk.item.rank) is not None:
                twice.update({rank} & parts.keys())
                parts[rank] = stored.digest
        with self._reading(self._files.path(METADATA)):
            for block in whole_content(name, tensor, places, self._files.open):
                content.take(block)
            return content.tensor(), {rank: digest for rank, digest in parts.items() if rank not in twice}

    @contextmanager
    def _reading(self, path: Path, offset: int | None = None) -> Iterator[None]:
        """Name the file and the place in errors."""
        try:
            yield
        except UnknownContent as error:
            raise CheckpointNotSupported(path, str(error), offset) from error
        except (ValueError, EOFError) as error:
            raise CheckpointError(path, str(error), offset) from error
