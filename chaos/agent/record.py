"""The agent's history file: JSON lines, one writer, in the kernel's hands as soon as a line is written."""

from __future__ import annotations

import json
import mmap
import os
import socket
from time import monotonic_ns, sleep, time_ns
from typing import Any, Callable

_CHUNK = 1 << 18
"""Bytes; less than the longest line that readers take, so that an unused part never looks like a line."""


class _Turn:
    """A lock at a fifth of the cost of :class:`threading.Lock` when nothing of it is in the processor's caches.

    Taking an element off a list is atomic in CPython. The lock is held for microseconds, so a thread that finds it
    taken only has to let the holder run.
    """

    def __init__(self) -> None:
        self.token: list[None] = [None]

    def wait(self) -> None:
        while True:
            sleep(0)
            try:
                self.token.pop()
                return
            except IndexError:
                continue

    def __enter__(self) -> None:
        self.wait()

    def __exit__(self, *_: object) -> None:
        self.token.append(None)


class Record:
    """A writer that appends events to ``<directory>/<attempt>-rank_<rank>-<pid>.jsonl``, or ``…-launcher-<pid>``
    without a rank.

    On a node it is ``…-launcher_<node>-<pid>``, since nodes may have PIDs of their own.

    The file is mapped into memory: a line outlives a SIGKILL of this process as soon as it has been copied, and no
    system call is made in the middle of a training step (measured in a rank: 15 µs for each ``write``, since it gives
    up the interpreter lock). The file is longer than its content while it is open, so a killed rank's file ends in NUL
    bytes, which readers ignore; :meth:`close` cuts them off. Raises OSError when the file cannot be made, and later
    when the disk is full.
    """

    def __init__(self, directory: str, *, run: str, attempt: str, rank: int | None, node: int | None = None) -> None:
        pid = os.getpid()
        launcher = "launcher" if node is None else f"launcher_{node}"
        who = launcher if rank is None else f"rank_{rank}"
        path = os.path.join(directory, f"{attempt}-{who}-{pid}.jsonl")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._map = self._map_from(0)
        self._sequence = 0
        self._turn = _Turn()
        # No thread may be writing while the rank forks, or the child would wait for it for ever.
        os.register_at_fork(
            before=self._turn.wait, after_in_parent=self._turn.__exit__, after_in_child=self._leave_to_parent
        )
        self._head = f'","attempt":{json.dumps(attempt)},"rank":{json.dumps(rank)},"pid":{pid}'
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            boot_id = boot.read().strip()
        self.write("writer.start", writer="agent", run=run, host=socket.gethostname(), boot=boot_id)

    def write(self, event: str, **fields: Any) -> None:
        """Record an event with fields that JSON can hold."""
        body = json.dumps(fields, separators=(",", ":"))[1:-1]
        separator = "," if body else ""
        with self._turn:
            self._append(
                f'{{"seq":{self._sequence},"mono":{monotonic_ns()},"wall":{time_ns()},"event":"{event}'
                f"{self._head}{separator}{body}}}\n".encode()
            )

    def step_writer(self, event: str) -> Callable[[int], None]:
        """Return a function that records ``event`` with a step, as ``write(event, step=step)`` does, for the hot path.

        In a training step nothing of this code is in the processor's caches, so every call and every look-up that can
        be left out counts.
        """
        middle = f',"event":"{event}{self._head},"step":'
        turn, mono, wall = self._turn.token, monotonic_ns, time_ns

        def write(step: int) -> None:
            try:
                turn.pop()
            except IndexError:
                self._turn.wait()
            try:
                text = f'{{"seq":{self._sequence},"mono":{mono()},"wall":{wall()}{middle}{step}}}\n'.encode()
                try:
                    self._map.write(text)
                except ValueError:  # the map is full
                    self._append(text)
                else:
                    self._sequence += 1
            finally:
                turn.append(None)

        return write

    def close(self) -> None:
        """Cut the file to its content; the process is about to end. Later events are still recorded."""
        with self._turn:
            end = self._map.tell()
            os.ftruncate(self._file, end)
            self._map = mmap.mmap(self._file, end)
            self._map.seek(end)

    def _leave_to_parent(self) -> None:
        """Leave the file to the rank in a process that the rank has forked (a data worker): it must not be cut."""
        try:
            os.close(self._file)
            self._file = os.memfd_create("chaos-record")
            self._map = self._map_from(0)
        finally:
            self._turn.__exit__()

    def _append(self, line: bytes) -> None:
        try:
            self._map.write(line)
        except ValueError:  # the map is full
            self._map = self._map_from(self._map.tell(), len(line))
            self._map.write(line)
        self._sequence += 1

    def _map_from(self, end: int, least: int = 0) -> mmap.mmap:
        size = end + max(_CHUNK, least)
        # Not a file with holes: on a full disk writing to the map would end the rank with SIGBUS.
        os.posix_fallocate(self._file, end, size - end)
        mapped = mmap.mmap(self._file, size)
        # Every page is touched now, or a step would pay for the first touch: a page fault and the file system's work.
        mapped[end:] = bytes(size - end)
        mapped.seek(end)
        return mapped


def optional_step(step: int | None) -> dict[str, int]:
    """Return the ``step`` field where the step is known, and nothing elsewhere."""
    return {} if step is None else {"step": step}
