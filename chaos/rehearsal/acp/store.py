"""A store that keeps the latest checkpoint of every rank in memory, beside the file in storage.

The memory is a directory of the run in a file system without a disk (/dev/shm). It outlives the ranks as MindIO ACP's
server does, and goes with the run. A file is known by its inode, size and time of its last change, not by its name: the
directory of an end-of-life checkpoint is renamed after it was written.
"""

from __future__ import annotations

import contextlib
import json
import os
from types import TracebackType
from typing import Any

from chaos.rehearsal.in_rank.storage import PacedFile


class Store:
    """One rank's access to the store in ``directory``, before a storage of ``mb_per_second`` (None: the disk's own)."""

    def __init__(self, directory: str, rank: int, mb_per_second: float | None) -> None:
        self._directory = directory
        self._rank = rank
        self._rate = mb_per_second

    def create(self, path: str) -> StoredFile:
        """Open a file for writing. It is in storage and in memory once it is closed."""
        return StoredFile(self, path)

    def open(self, path: str) -> Any:
        """Open a file for reading: from memory where the store has this version of it, from storage otherwise.

        The returned file has ``source``, ``memory`` or ``storage``.
        """
        identity = _identity(path)
        for name in sorted(os.listdir(self._directory)):
            if name.endswith(".json") and self._is_of(name, identity):
                with contextlib.suppress(FileNotFoundError):  # a rank that saves replaces it
                    return MemoryFile(open(os.path.join(self._directory, name[: -len(".json")]), "rb"))
        return self.storage_file(path, "rb")

    def storage_file(self, path: str, mode: str) -> Any:
        """Return the file in storage, at the storage's throughput."""
        return PacedFile(open(path, mode), self._rate or float("inf"))

    def keep(self, path: str, content: bytes) -> None:
        """Keep the content of a file that has just been written, in place of this rank's previous one."""
        place = os.path.join(self._directory, f"rank_{self._rank}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place + ".json")  # from here on no reader takes the old content for the new file
        with open(place + ".part", "wb") as file:
            file.write(content)
        os.rename(place + ".part", place)  # a reader keeps the content that it has opened
        with open(place + ".json.part", "w", encoding="ascii") as file:
            json.dump(_identity(path), file)
        os.rename(place + ".json.part", place + ".json")

    def _is_of(self, name: str, identity: dict[str, int]) -> bool:
        try:
            with open(os.path.join(self._directory, name), encoding="ascii") as file:
                return bool(json.load(file) == identity)
        except (FileNotFoundError, ValueError):
            return False


class StoredFile:
    """A file that is being written. It appears under its own name, complete, when it is closed without an error."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._partial = path + ".tmp"
        self._file = store.storage_file(self._partial, "wb")
        self._content = bytearray()

    def write(self, data: Any) -> int:
        """Write to storage, and keep a copy."""
        self._content += data
        self._file.write(data)
        return len(data)

    def close(self) -> None:
        """Give the file its name, and keep it in memory."""
        self._file.close()
        os.rename(self._partial, self._path)
        self._store.keep(self._path, bytes(self._content))

    def __enter__(self) -> StoredFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._file.close()


class MemoryFile:
    """A file that is read from memory."""

    source = "memory"

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> Any:
        """Read from the file."""
        return self._file.read(size)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> MemoryFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _identity(path: str) -> dict[str, int]:
    status = os.stat(path)
    return {"device": status.st_dev, "inode": status.st_ino, "size": status.st_size, "changed": status.st_mtime_ns}
