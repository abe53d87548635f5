"""The agent's history file: JSON lines, one writer, in the kernel's hands as soon as a line is written."""

from __future__ import annotations

import json
import mmap
import os
import socket
import threading
from time import monotonic_ns, time_ns
from typing import Any, Callable

_CHUNK = 1 << 18
"""Less than the longest line that readers take, so that what is unused never looks like one."""


class Record:
    """Appends events to ``<directory>/<attempt>-rank_<rank>-<pid>.jsonl``.

    The file is mapped into memory: a line outlives a SIGKILL of this process as soon as it has been copied, and no
    system call is made in the middle of a training step (measured in a rank: 15 µs for each ``write``, since it gives
    up the interpreter lock). The file is longer than its content while it is open, so a killed rank's file ends in NUL
    bytes, which readers ignore; :meth:`close` cuts them off. Raises OSError when the file cannot be made.
    """

    def __init__(self, directory: str, *, run: str, attempt: str, rank: int) -> None:
        pid = os.getpid()
        path = os.path.join(directory, f"{attempt}-rank_{rank}-{pid}.jsonl")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._map = self._map_from(0)
        self._sequence = 0
        self._lock = threading.Lock()
        self._head = f'","attempt":{json.dumps(attempt)},"rank":{rank},"pid":{pid}'
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            boot_id = boot.read().strip()
        self.write("writer.start", writer="agent", run=run, host=socket.gethostname(), boot=boot_id)

    def write(self, event: str, **fields: Any) -> None:
        """Record an event with fields that JSON can hold."""
        body = json.dumps(fields, separators=(",", ":"))[1:-1]
        separator = "," if body else ""
        with self._lock:
            self._append(
                f'{{"seq":{self._sequence},"mono":{monotonic_ns()},"wall":{time_ns()},"event":"{event}'
                f"{self._head}{separator}{body}}}\n".encode()
            )

    def step_writer(self, event: str) -> Callable[[int], None]:
        """A function that records ``event`` with a step: the same as ``write(event, step=step)`` for the hot path.

        In a training step nothing of this is in the processor's caches, so every call and every look-up that can be
        left out counts.
        """
        middle = f',"event":"{event}{self._head},"step":'
        lock, mono, wall = self._lock, monotonic_ns, time_ns

        def write(step: int) -> None:
            with lock:
                text = f'{{"seq":{self._sequence},"mono":{mono()},"wall":{wall()}{middle}{step}}}\n'.encode()
                try:
                    self._map.write(text)
                except ValueError:  # the map is full
                    self._append(text)
                else:
                    self._sequence += 1

        return write

    def close(self) -> None:
        """Cut the file to its content; the process is about to end. Later events are still taken."""
        with self._lock:
            end = self._map.tell()
            os.ftruncate(self._file, end)
            self._map = mmap.mmap(self._file, end)
            self._map.seek(end)

    def _append(self, line: bytes) -> None:
        try:
            self._map.write(line)
        except ValueError:  # the map is full
            self._map = self._map_from(self._map.tell(), len(line))
            self._map.write(line)
        self._sequence += 1

    def _map_from(self, end: int, least: int = 0) -> mmap.mmap:
        size = end + max(_CHUNK, least)
        os.ftruncate(self._file, size)
        mapped = mmap.mmap(self._file, size)
        # Every page is touched now, or a step would pay for the first touch: a fault and the file system's work.
        mapped[end:] = bytes(size - end)
        mapped.seek(end)
        return mapped


def optional_step(step: int | None) -> dict[str, int]:
    """The ``step`` field where the step is known, and nothing where it is not."""
    return {} if step is None else {"step": step}
