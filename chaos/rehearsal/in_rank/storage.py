"""The storage of a rehearsal, limited to a stated throughput. Every read of a checkpoint is recorded with its source.

The agent installs it before MindSpore's own ``mindspore.common.file_system`` is used, which every checkpoint file goes
through: MindSpore chooses between ``open`` and, where the package can be imported, MindIO ACP.
"""

from __future__ import annotations

import time
from types import ModuleType, TracebackType
from typing import Any, Callable

from chaos.agent.start import Agent

_PIECE = 1 << 20


def install(agent: Agent) -> None:
    """Watch the file system in a rank; an extension of the agent."""
    if agent.place.rank is None:
        return
    agent.imports.watch("mindspore.common.file_system", lambda module: _replace(agent, module))


def _replace(agent: Agent, module: ModuleType) -> None:
    rate = agent.configuration.settings.get("storage", {}).get("mb_per_second")
    basic = module._register_basic_file_system
    mindio = module._register_mindio_file_system

    def register_basic(fs: Any) -> bool:
        done = basic(fs)
        if rate:
            fs.create = _paced(fs.create, rate)
            fs.open = _paced(fs.open, rate)
        fs.open = _recorded(agent, fs.open, fs.backend)
        return bool(done)

    def register_mindio(fs: Any) -> bool:
        done = mindio(fs)
        if done:
            fs.open = _recorded(agent, fs.open, fs.backend)
        return bool(done)

    module._register_basic_file_system = register_basic  # type: ignore[attr-defined]
    module._register_mindio_file_system = register_mindio  # type: ignore[attr-defined]


def create(agent: Agent, path: str) -> Any:
    """Return a file to write a checkpoint to, at the storage's throughput.

    For a job without MindSpore's file system. None of the data waits in a buffer of this process.
    """
    return _at_pace(agent, lambda name: open(name, "wb", buffering=0))(path)


def open_recorded(agent: Agent, path: str) -> Any:
    """Return a checkpoint to read, at the storage's throughput; the read is recorded."""
    return _recorded(agent, _at_pace(agent, lambda name: open(name, "rb")), "basic")(path)


def _at_pace(agent: Agent, opens: Callable[..., Any]) -> Callable[..., Any]:
    rate = agent.configuration.settings.get("storage", {}).get("mb_per_second")
    return _paced(opens, rate) if rate else opens


def _recorded(agent: Agent, opens: Callable[..., Any], backend: str) -> Callable[..., Any]:
    assert agent.record is not None
    record = agent.record

    def open_recorded(path: str, *arguments: Any) -> Any:
        file = opens(path, *arguments)
        record.write("checkpoint.read", path=str(path), backend=backend, source=getattr(file, "source", "storage"))
        return file

    return open_recorded


def _paced(opens: Callable[..., Any], rate: float) -> Callable[..., Any]:
    return lambda *arguments: PacedFile(opens(*arguments), rate)


class PacedFile:
    """A file of a storage with ``mb_per_second``: reading and writing take at least the time that this rate needs.

    It waits asleep, so that other threads go on meanwhile, as with real storage.
    """

    source = "storage"

    def __init__(self, file: Any, mb_per_second: float) -> None:
        self._file = file
        self._rate = mb_per_second * 1e6
        self._begun = time.monotonic()
        self._moved = 0

    def write(self, data: Any) -> Any:
        """Write, and wait until the storage could have written so much."""
        written = self._file.write(data)
        self._wait(len(data))
        return written

    def read(self, size: int = -1) -> Any:
        """Read, and wait until the storage could have read so much."""
        data = self._file.read(size)
        self._wait(len(data))
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _wait(self, size: int) -> None:
        now = time.monotonic()
        # Idle time of the storage is not credit for later.
        self._begun = max(self._begun, now - self._moved / self._rate - _PIECE / self._rate)
        self._moved += size
        left = self._begun + self._moved / self._rate - now
        if left > 0:
            time.sleep(left)

    def __enter__(self) -> PacedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
